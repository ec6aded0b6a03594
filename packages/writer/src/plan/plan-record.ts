import { createHash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { crc32, FileError } from '@shardtool/base';
import type { ManifestColumn } from '@shardtool/format';
import { PlanRecordError } from '../errors.js';
import { decodeShardPlan, encodeShardPlan, type ShardPlan } from './shard-plan.js';

/** What a pack is about to do, without its files: they stand in the shards' own plans. */
export interface PlanFacts {
  /** The source folder of the pack that planned. */
  readonly source: string;
  /** Every option that a byte of the result depends on; see `recordedOptions`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: readonly ManifestColumn[];
  readonly samples: number;
  readonly files: number;
  /** Size of all files, in bytes. */
  readonly sourceBytes: number;
  /** Equal where planning again would make the same plan: see `digestOfSource`. Null in records of earlier versions. */
  readonly sourceDigest: string | null;
  /** Size of all shards as tars, at most, in bytes. */
  readonly shardBytes: number;
  readonly skippedFiles: number;
  /** The same by their endings, or other reasons. Absent in records of earlier versions. */
  readonly skipped?: Readonly<Record<string, number>>;
  /** Annotations that are in no sample, by the reason. Absent where there are none. */
  readonly skippedAnnotations?: Readonly<Record<string, number>>;
  /** What was bad before any file was read. Absent where nothing was. */
  readonly quarantined?: readonly BadFacts[];
  readonly skippedFolders: readonly string[];
  /** Left out for the dot in front of their names. */
  readonly hiddenFolders: readonly string[];
  /** Folders right below the source that no packed image is in, and that so are no classes. Absent where there are none. */
  readonly emptyFolders?: readonly string[];
  /** Images that no row of the labels names. Absent where there are none. */
  readonly unlabelled?: number;
  /** Rows of the labels without a file, where those are allowed. Absent where there are none. */
  readonly missingFiles?: number;
  /** Images that others stand for, and how many of them are of another class. */
  readonly duplicates: number;
  readonly classConflicts: number;
  /** Of a dataset that grows: what has become of the files that it has. Absent where nothing has changed. */
  readonly changes?: SourceChanges;
  /** The dataset that the shards are added to, if any. */
  readonly base?: BaseFacts;
}

/** How many files of a dataset have changed since they were packed, are gone, or have other labels now; the first of them. */
export interface SourceChanges {
  readonly changed: number;
  readonly gone: number;
  /** Absent in records of earlier versions. */
  readonly relabelled?: number;
  readonly first: string;
}

/** A file that was left out, below the source, or one that labels name. */
interface BadFacts {
  readonly path: string;
  readonly reason: string;
}

/** What of a dataset that grows has to be known at its commit. */
export interface BaseFacts {
  readonly identity: string;
  /** How many lines of quarantine.jsonl are its own. */
  readonly quarantined: number;
  /** Number of the first new shard. */
  readonly firstShard: number;
}

/** Where a shard's plan lies in the record. */
export interface PlanPlace {
  readonly offset: number;
  readonly bytes: number;
  readonly crc32: number;
  readonly files: number;
  /** Size of these files, in bytes. */
  readonly sourceBytes: number;
}

/** The record without the plans of the shards. */
export interface PlanHeader extends PlanFacts {
  readonly version: typeof VERSION;
  /** sha256 over the options and the plans of all shards: every path, size, time, class and label column. */
  readonly digest: string;
  readonly shards: readonly PlanPlace[];
}

const VERSION = 1;
const MAGIC = Buffer.from('shardtool plan\n');
/** Of the header, which comes last since it has the places of all else: its length and crc32, then {@link MAGIC}. */
const TRAILER_BYTES = 8 + MAGIC.length;

/** Hands every shard's plan as bytes to `take`, in order, and returns the header of the record that they make. */
export function encodePlan(
  facts: PlanFacts,
  shards: Iterable<ShardPlan>,
  take: (bytes: Uint8Array) => void = () => undefined,
): PlanHeader {
  const hash = createHash('sha256').update(JSON.stringify([VERSION, facts.options, facts.classes, facts.columns]));
  const places: PlanPlace[] = [];
  let offset = MAGIC.length;
  for (const shard of shards) {
    const bytes = encodeShardPlan(shard);
    hash.update(bytes);
    const { count, bytes: sizes } = shard.files;
    const sourceBytes = sizes.reduce((sum, size) => sum + Math.max(0, size), 0);
    places.push({ offset, bytes: bytes.length, crc32: crc32(bytes), files: count, sourceBytes });
    take(bytes);
    offset += bytes.length;
  }
  return { version: VERSION, digest: hash.digest('hex'), ...facts, shards: places };
}

/** Writes the record to a new file and flushes it. Throws {@link FileError}. */
export function writePlanRecord(path: string, facts: PlanFacts, shards: Iterable<ShardPlan>): PlanHeader {
  try {
    const fd = openSync(path, 'wx');
    try {
      writeSync(fd, MAGIC);
      const header = encodePlan(facts, shards, (bytes) => writeWhole(fd, bytes));
      const json = Buffer.from(JSON.stringify(header));
      const trailer = Buffer.alloc(TRAILER_BYTES);
      trailer.writeUInt32LE(json.length, 0);
      trailer.writeUInt32LE(crc32(json), 4);
      MAGIC.copy(trailer, 8);
      writeWhole(fd, Buffer.concat([json, trailer]));
      fsyncSync(fd);
      return header;
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new FileError({ path }, `${path} cannot be written (${(cause as Error).message}).`, { cause });
  }
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

/** Reads the header of a record. Throws {@link PlanRecordError} where it is damaged, and the system's errors. */
export function readPlanHeader(path: string): PlanHeader {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const trailer = readExactly(fd, Math.max(0, size - TRAILER_BYTES), Math.min(size, TRAILER_BYTES), path);
    const bytes = trailer.length < TRAILER_BYTES ? -1 : trailer.readUInt32LE(0);
    const isOurs = bytes >= 0 && trailer.subarray(8).equals(MAGIC) && bytes + TRAILER_BYTES <= size;
    if (!isOurs) throw damaged(path);
    const json = readExactly(fd, size - TRAILER_BYTES - bytes, bytes, path);
    if (crc32(json) !== trailer.readUInt32LE(4)) throw damaged(path);
    const header = JSON.parse(json.toString()) as PlanHeader;
    if (header.version !== VERSION)
      throw damaged(path, `is of version ${header.version}, which this shardtool does not know`);
    return header;
  } finally {
    closeSync(fd);
  }
}

/** Reads the plan of one shard. Throws {@link PlanRecordError} where it is damaged. `path` is for messages. */
export function readShardPlan(fd: number, { offset, bytes, crc32: expected }: PlanPlace, path: string): ShardPlan {
  const block = readExactly(fd, offset, bytes, path);
  if (crc32(block) !== expected) throw damaged(path);
  return decodeShardPlan(block);
}

function readExactly(fd: number, offset: number, length: number, path: string): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(new ArrayBuffer(length));
  let done = 0;
  while (done < length) {
    const read = readSync(fd, bytes, done, length - done, offset + done);
    if (read === 0) throw damaged(path);
    done += read;
  }
  return bytes;
}

function damaged(path: string, what = 'is damaged'): PlanRecordError {
  return new PlanRecordError(
    { path },
    `${path}, the plan of a pack that did not end, ${what}; begin anew with "restart" (--restart).`,
  );
}
