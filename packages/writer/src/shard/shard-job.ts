import { EntryNameError, ImageError, KeyLengthError, optionName, SampleSizeError, sentence } from '@shardtool/base';
import { type FieldSize, IndexRows, type OutputLayout, type ShardIndex } from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import { PROVENANCE_COLUMNS } from '../plan/provenance.js';
import type { ShardPlan } from '../plan/shard-plan.js';
import type { FileAccess } from '../source/ahead/file-access.js';
import { type FileAhead, FilesAhead } from '../source/ahead/files-ahead.js';
import type { InFlight } from '../source/ahead/in-flight.js';
import { pathAt } from '../source/file-table.js';
import { BadFile, badFile, checkUnchanged } from '../source/source-file.js';
import type { ImageStep } from './image-step.js';
import { goesInPieces, HELD_BYTES } from './large-sample.js';
import { createShard, type FillShard, type ShardRecord, type ShardTarget } from './new-shard.js';
import {
  type PackedSample,
  type PlannedFile,
  type PlannedSample,
  packSample,
  packSteppedSample,
  type SampleOptions,
} from './pack-sample.js';
import type { SampleWriter } from './put-sample.js';

/** Limit for layouts that need a whole sample in memory: buffers of Node 20 are not longer. */
const MAX_HELD_BYTES = 2 ** 32 - 2;

/** What all shards of a pack have in common. */
export interface ShardSetting extends ShardTarget {
  readonly sample: SampleOptions;
  /** Null if images are not processed: their bytes go straight into the shard. */
  readonly step: ImageStep | null;
  readonly onBad: 'raise' | 'quarantine';
  /** True if the files were measured some time ago. A file with another modification time is then bad. */
  readonly checkTimes: boolean;
  /** Reads many files concurrently; null if files are read one at a time, each straight into its shard. */
  readonly flight: InFlight | null;
  /** How files are opened and read in that case. */
  readonly access: FileAccess;
  /** Called after each sample, and awaited if it returns a promise; null if no other work needs the thread. */
  readonly yieldIfDue: (() => Promise<void> | null) | null;
}

/** One shard to write. */
export interface ShardJob {
  readonly shard: number;
  /** Name of the shard without its extension. */
  readonly stem: string;
  readonly plan: ShardPlan;
}

/** An image that was skipped together with the files next to it. */
export interface QuarantinedFile {
  /** Path below the source. */
  readonly path: string;
  readonly reason: string;
  /** The bad image that stood for this one, which has the same bytes and may be fine itself. */
  readonly standsFor?: string;
}

/** Result of writing a shard. */
export interface ShardResult extends ShardRecord {
  readonly shard: number;
  readonly files: number;
  readonly renamed: number;
  readonly orientationBaked: number;
  readonly warnings: number;
  readonly metadataKept: number;
  /**
   * Number of images with more than 8 bits per channel, and of those with values that decoders reject. Absent in notes
   * of earlier versions.
   */
  readonly narrowed?: number;
  readonly refused?: number;
  readonly quarantined: readonly QuarantinedFile[];
  /** Size of the files of skipped samples; absent in notes of earlier versions. */
  readonly badBytes?: number;
}

/** Called after each sample with the number of files and source bytes that are done. Throws if the pack should stop. */
export type Report = (files: number, bytes: number) => void;

/**
 * Writes one shard and its indexes; for `whenFilled` see {@link createShard}. Throws {@link BadFileError} for a file
 * that cannot be packed (unless bad files are quarantined), DiskFullError and FileError. After an error nothing of the
 * shard is left.
 */
export async function writeShard(
  job: ShardJob,
  setting: ShardSetting,
  report: Report,
  whenFilled?: () => void,
): Promise<ShardResult> {
  const { plan } = job;
  let put: PutSamples | undefined;
  const fill: FillShard = async (writer, rows) => {
    put = await putSamples(plan, setting, writer, rows, report);
    return keepRows(columnsOf(plan, put.hashes), put.kept);
  };
  // Whether the next shard is written at all may depend on the bad files of this one.
  const whenGood = () => put!.quarantined.length === 0 && whenFilled?.();
  const record = await createShard(setting, job.stem, plan.samples, fill, whenGood);
  const { kept: _, hashes: __, ...counts } = put!;
  return { shard: job.shard, ...record, ...counts };
}

/** Processes the samples of a shard like {@link writeShard}, but writes nothing and only reports bad files. */
export async function checkShard(plan: ShardPlan, setting: ShardSetting, report: Report): Promise<CheckedShard> {
  const rows = new IndexRows(plan.samples);
  const writer = nowhereBut(setting.layout);
  const { kept: _, hashes: __, ...counts } = await putSamples(plan, setting, writer, rows, report);
  return counts;
}

/** Result of checking the samples of a shard. */
export type CheckedShard = Omit<ShardResult, 'shard' | keyof ShardRecord>;

interface PutSamples extends CheckedShard {
  /** Rows of the plan that are in the shard. */
  readonly kept: readonly number[];
  /** sha256 of the image of each row of the plan, if it is requested. */
  readonly hashes: readonly (string | null)[];
}

const NOWHERE: SampleWriter = {
  begin: (_key, fields) => fields.map(({ bytes }) => new Uint8Array(bytes)),
  commit: () => undefined,
  discard: () => undefined,
  writeInPieces: async (_key, fields) => {
    for (const { pieces } of fields) for await (const _ of pieces());
    return fields.map(() => 0);
  },
};

/** A writer that discards its samples, but rejects the same names as the layout. */
function nowhereBut(layout: OutputLayout): SampleWriter {
  // A sample that is begun and then discarded is never written, so no file is needed.
  const shard = layout.createWriter(-1, `A shard of ${layout.name}`);
  const checkNames = (key: string, fields: readonly FieldSize[]) => {
    shard.begin(
      key,
      fields.map(({ name }) => ({ name, bytes: 0 })),
    );
    shard.discard();
  };
  return {
    ...NOWHERE,
    begin: (key, fields) => {
      checkNames(key, fields);
      return NOWHERE.begin(key, fields);
    },
    writeInPieces: (key, fields) => {
      checkNames(key, fields);
      return NOWHERE.writeInPieces!(key, fields);
    },
  };
}

async function putSamples(
  plan: ShardPlan,
  setting: ShardSetting,
  writer: SampleWriter,
  rows: IndexRows,
  report: Report,
): Promise<PutSamples> {
  const { sample: options, step, flight, access, checkTimes, maxSampleBytes, yieldIfDue } = setting;
  const hashes: (string | null)[] = new Array(options.isHashed === true ? plan.samples : 0).fill(null);
  // Samples that are rejected for their size are not read ahead.
  const heldBytes = Math.min(writer.writeInPieces === undefined ? MAX_HELD_BYTES : HELD_BYTES, maxSampleBytes);
  const ahead = flight && new FilesAhead(options.root, plan.files, flight, access, checkTimes, heldBytes);
  const quarantined: QuarantinedFile[] = [];
  const count = { files: 0, renamed: 0, orientationBaked: 0, warnings: 0, metadataKept: 0, narrowed: 0, refused: 0 };
  let badBytes = 0;
  const kept: number[] = [];
  try {
    for (let s = 0; s < plan.samples; s++) {
      const from = plan.fileStart[s]!;
      const to = plan.fileStart[s + 1]!;
      const taken = ahead === null ? null : ahead.take(from, to);
      const read = taken instanceof Promise ? await taken : taken;
      const sample = sampleAt(plan, s, read);
      const bytes = sourceBytes(sample);
      try {
        if (bytes > maxSampleBytes) throw tooLarge(sample, bytes, maxSampleBytes);
        if (checkTimes && read === null) checkUnchanged(options.root, plan.files, from, to);
        const packed =
          step === null && !goesInPieces(bytes, writer)
            ? packSample(writer, rows, sample, options)
            : await packSteppedSample(writer, rows, sample, options, step);
        kept.push(s);
        if (options.isHashed === true) hashes[s] = packed.sha256;
        countPacked(count, sample, packed);
      } catch (error) {
        quarantined.push(quarantine(error, sample, setting.onBad));
        badBytes += bytes;
      }
      report(sample.files.length, bytes);
      const others = yieldIfDue?.() ?? null;
      if (others !== null) await others;
    }
  } finally {
    ahead?.close();
  }
  return { ...count, kept, hashes, quarantined, badBytes };
}

type Counts = { -readonly [Name in keyof Omit<CheckedShard, 'quarantined' | 'badBytes'>]-?: CheckedShard[Name] };

function countPacked(count: Counts, { files }: PlannedSample, packed: PackedSample): void {
  count.files += files.length;
  if (packed.renamed) count.renamed++;
  if (packed.orientationBaked) count.orientationBaked++;
  if (packed.metadataKept) count.metadataKept++;
  count.warnings += packed.warnings;
  count.narrowed += packed.precision.narrowed;
  count.refused += packed.precision.refused;
}

/**
 * Returns the entry of quarantine.jsonl for a bad sample. Throws `error` if it does not concern this sample alone, and
 * BadFileError if bad samples stop the pack.
 */
function quarantine(error: unknown, { files }: PlannedSample, onBad: ShardSetting['onBad']): QuarantinedFile {
  const isOfName =
    error instanceof KeyCollisionError || error instanceof EntryNameError || error instanceof KeyLengthError;
  const isBad = error instanceof BadFile || error instanceof ImageError || error instanceof SampleSizeError;
  if (!(isBad || (isOfName && onBad === 'quarantine'))) throw error;
  const { path } = files[0]!;
  if (onBad === 'raise') throw badFile(error, path);
  return { path, reason: error.message };
}

/** `read` returns the contents of each file, if files are read ahead. */
function sampleAt(
  { fileStart, files, cls, texts, sizes }: ShardPlan,
  sample: number,
  read: readonly FileAhead[] | null,
): PlannedSample {
  const members: PlannedFile[] = [];
  const from = fileStart[sample]!;
  for (let file = from; file < fileStart[sample + 1]!; file++) {
    const ahead = read === null ? undefined : read[file - from];
    const bytes = files.bytes[file]!;
    members.push({ path: pathAt(files, file), bytes, put: ahead?.put, pieces: ahead?.pieces });
  }
  const made = texts.size === 0 ? NO_TEXTS : Array.from(texts, ([name, list]) => [name, list[sample]!] as const);
  return { files: members, cls: cls[sample]!, texts: made, size: sizes?.[sample] ?? null };
}

const NO_TEXTS: PlannedSample['texts'] = [];

function tooLarge({ files }: PlannedSample, bytes: number, limit: number): BadFile {
  const [image, ...others] = files;
  const what = others.length === 0 ? 'has' : `and the ${others.length} next to it have`;
  return new BadFile(
    sentence`${image!.path} ${what} ${bytes} bytes, more than the limit of ${limit} (${optionName('maxSampleBytes')}); exclude it, or raise ${optionName('maxSampleBytes')}.`,
  );
}

function sourceBytes(sample: PlannedSample): number {
  let sum = 0;
  for (let i = 0; i < sample.files.length; i++) sum += Math.max(0, sample.files[i]!.bytes);
  return sum;
}

/** The columns of the plan, completed with the values that are known after the files were read. */
function columnsOf({ columns }: ShardPlan, hashes: readonly (string | null)[]): ShardPlan['columns'] {
  return hashes.length === 0 ? columns : new Map([...columns, [PROVENANCE_COLUMNS.sha256, hashes]]);
}

function keepRows(columns: ShardPlan['columns'], kept: readonly number[]): ShardIndex['columns'] {
  return new Map([...columns].map(([name, values]) => [name, kept.map((row) => values[row] ?? null)]));
}
