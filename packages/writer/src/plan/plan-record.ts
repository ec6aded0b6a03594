import { createHash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { crc32, FileError, option, reasonOf, sentence } from '@shardtool/base';
import type { ManifestColumn } from '@shardtool/format';
import { PlanRecordError } from '../errors.js';
import { decodeShardPlan, encodeShardPlan, type ShardPlan } from './shard-plan.js';

/** The plan of a pack, without its files, which are in the plans of the shards. */
export interface PlanFacts {
  /** Source folder of the pack that made the plan. */
  readonly source: string;
  /** Every option that the bytes of the result depend on; see `recordedOptions`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: readonly ManifestColumn[];
  readonly samples: number;
  readonly files: number;
  /** Size of all files, in bytes. */
  readonly sourceBytes: number;
  /**
   * Equal digests mean that planning again would make the same plan: see `digestOfSource`. Null in records of earlier
   * versions.
   */
  readonly sourceDigest: string | null;
  /** Upper limit of the size of all shards as tars, in bytes. */
  readonly shardBytes: number;
  readonly skippedFiles: number;
  /** Number of skipped files by extension or by another reason. Absent in records of earlier versions. */
  readonly skipped?: Readonly<Record<string, number>>;
  /** Number of annotations that are in no sample, by reason. Absent if there are none. */
  readonly skippedAnnotations?: Readonly<Record<string, number>>;
  /** Files that were bad before any file was read. Absent if there are none. */
  readonly quarantined?: readonly BadFacts[];
  readonly skippedFolders: readonly string[];
  /** Folders that are skipped because their names start with a dot. */
  readonly hiddenFolders: readonly string[];
  /** Folders right below the source that contain no packed image and so are not classes. Absent if there are none. */
  readonly emptyFolders?: readonly string[];
  /** Number of images without a row in the labels. Absent if there are none. */
  readonly unlabelled?: number;
  /** Number of rows of the labels whose file is missing, if that is allowed. Absent if there are none. */
  readonly missingFiles?: number;
  /**
   * Number of images that are not packed because another has the same bytes, and how many of them have another class.
   */
  readonly duplicates: number;
  readonly classConflicts: number;
  /** How the packed files of a growing dataset have changed. Absent if nothing has changed. */
  readonly changes?: SourceChanges;
  /** Number of packed files that the source lacks and `changes` does not count. Absent if there are none. */
  readonly unlistedMissing?: number;
  /**
   * Rows of the growing dataset that are gone or replaced, by the file of their shard. Absent if none are, or if changes
   * are only listed.
   */
  readonly replaced?: Readonly<Record<string, readonly number[]>>;
  /** The dataset that the shards are added to, if any. */
  readonly base?: BaseFacts;
}

/**
 * How many files of a dataset were changed, deleted or given other labels since they were packed, and the first of
 * them.
 */
export interface SourceChanges {
  readonly changed: number;
  readonly gone: number;
  /** Absent in records of earlier versions. */
  readonly relabelled?: number;
  readonly first: string;
  /** True if these samples are replaced or removed. Absent if they are only listed. */
  readonly isApplied?: boolean;
}

/** A skipped file: its path below the source, or as the labels name it. */
interface BadFacts {
  readonly path: string;
  readonly reason: string;
}

/** Facts about a growing dataset that are needed when it is finalized. */
export interface BaseFacts {
  readonly identity: string;
  /** Number of lines in its own quarantine.jsonl. */
  readonly quarantined: number;
  /** Number of the first new shard. */
  readonly firstShard: number;
}

/** Position of a shard's plan in the record. */
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
  /** sha256 of the options and the plans of all shards: every path, size, time, class and label column. */
  readonly digest: string;
  readonly shards: readonly PlanPlace[];
}

const VERSION = 1;
const MAGIC = Buffer.from('shardtool plan\n');
/**
 * Length and crc32 of the header, then {@link MAGIC}. The header is last because it has the positions of everything
 * else.
 */
const TRAILER_BYTES = 8 + MAGIC.length;

/** Passes the encoded plan of every shard to `take`, in order, and returns the header of the record. */
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
    throw new FileError({ path }, `${path} cannot be written: ${reasonOf(cause)}.`, { cause });
  }
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

/** Reads the header of a record. Throws {@link PlanRecordError} if it is damaged, and system errors. */
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
      throw damaged(path, `is of version ${header.version}, which this version of shardtool cannot read`);
    return header;
  } finally {
    closeSync(fd);
  }
}

/** Reads the plan of one shard. Throws {@link PlanRecordError} if it is damaged. `path` is for messages. */
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
    sentence`${path}, the plan of an unfinished pack, ${what}; start again with ${option('restart')}.`,
  );
}
