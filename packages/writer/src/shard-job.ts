import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ColumnType,
  type ColumnValue,
  ImageError,
  type ShardIndex,
  type ShardLayout,
  type ShardWriter,
  writeShardIndex,
} from '@shardtool/format';
import { BadFileError, DiskFullError } from './errors.js';
import { type FileTable, pathAt } from './file-table.js';
import type { PackPlan } from './plan.js';
import type { QuarantinedFile } from './quarantine.js';
import type { Recoder } from './recode.js';
import {
  type PlannedSample,
  type SampleOptions,
  writeRecodedSample,
  writeSample,
} from './sample-writer.js';
import { shardPaths, TEMPORARY } from './shard-paths.js';
import { ShardRows } from './shard-rows.js';
import { BadFile } from './source-file.js';

/** What all shards of a pack have in common. */
export interface ShardSetting {
  readonly output: string;
  /** In front of the shards' numbers. */
  readonly name: string;
  readonly layout: ShardLayout;
  readonly files: FileTable;
  readonly plan: PackPlan;
  readonly sample: SampleOptions;
  /** Null where the images' bytes pass through untouched. */
  readonly recode: Recoder | null;
  readonly onBad: 'stop' | 'quarantine';
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
}

/** One shard to be written. */
export interface ShardJob {
  readonly shard: number;
  /** Label columns of the shard's samples, in their order. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

/** What became of a shard. */
export interface ShardResult {
  readonly shard: number;
  /** Below the output folder. */
  readonly file: string;
  readonly bytes: number;
  readonly crc32: number;
  readonly samples: number;
  readonly files: number;
  /** Length of the longest span of a sample, in bytes. */
  readonly maxSampleBytes: number;
  /** Samples of each class, by its number. */
  readonly classCounts: ReadonlyMap<number, number>;
  /** Samples that have each field. */
  readonly fieldCounts: ReadonlyMap<string, number>;
  readonly renamed: number;
  readonly orientationBaked: number;
  readonly quarantined: readonly QuarantinedFile[];
}

/** Is told after each sample how many files and source bytes are done; throws where the pack is to end. */
export type Report = (files: number, bytes: number) => void;

/**
 * Writes one shard and its index, each under a temporary name, flushed, then renamed. Throws {@link BadFileError} for a
 * file that cannot be packed (unless bad files go to quarantine), {@link DiskFullError}, {@link FileError}; nothing of
 * the shard is left then.
 */
export async function writeShard(job: ShardJob, setting: ShardSetting, report: Report): Promise<ShardResult> {
  const { layout, output } = setting;
  const { file, folder, index } = shardPaths(layout, setting.name, job.shard);
  const [path, indexPath] = [join(output, file), join(output, index)];
  const temporary = `${path}${TEMPORARY}`;
  try {
    if (folder !== null) mkdirSync(join(output, folder), { recursive: true });
    const fd = openSync(temporary, 'w');
    try {
      const shard = await writeSamples(layout.createWriter(fd, file), job, setting, report);
      await writeShardIndex(indexPath, shard.index);
      renameSync(temporary, path);
      return { shard: job.shard, file, ...shard.result };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    rmSync(temporary, { force: true });
    rmSync(indexPath, { force: true });
    if (folder !== null) rmSync(join(output, folder), { force: true, recursive: true });
    throw asDiskFull(error, output);
  }
}

interface WrittenShard {
  readonly index: ShardIndex;
  readonly result: Omit<ShardResult, 'shard' | 'file'>;
}

async function writeSamples(
  writer: ShardWriter,
  job: ShardJob,
  setting: ShardSetting,
  report: Report,
): Promise<WrittenShard> {
  const { plan, files, sample: options, recode } = setting;
  const first = plan.shardStart[job.shard]!;
  const end = plan.shardStart[job.shard + 1]!;
  const rows = new ShardRows(end - first);
  const kept: number[] = [];
  const quarantined: QuarantinedFile[] = [];
  const classCounts = new Map<number, number>();
  const fieldCounts = new Map<string, number>();
  const count = { files: 0, renamed: 0, orientationBaked: 0 };
  for (let s = first; s < end; s++) {
    const sample = sampleAt(plan, files, s);
    try {
      const { row, renamed, orientationBaked } =
        recode === null
          ? writeSample(writer, sample, options)
          : await writeRecodedSample(writer, sample, options, recode);
      rows.add(row);
      kept.push(s - first);
      count.files += sample.files.length;
      if (renamed) count.renamed++;
      if (orientationBaked) count.orientationBaked++;
      if (row.cls !== -1) addTo(classCounts, row.cls, 1);
      for (const { name } of row.fields) addTo(fieldCounts, name, 1);
    } catch (error) {
      writer.discard();
      if (!(error instanceof BadFile || error instanceof ImageError)) throw error;
      if (setting.onBad === 'stop') throw badFile(error, sample.files[0]!.path);
      quarantined.push({ path: sample.files[0]!.path, reason: error.message });
    }
    report(sample.files.length, sourceBytes(sample));
  }
  const finished = writer.finish();
  const index = rows.toIndex(finished);
  return {
    index: { ...index, columns: keepRows(job.columns, kept), columnTypes: setting.columnTypes },
    result: {
      bytes: finished.bytes,
      crc32: finished.crc32,
      samples: rows.samples,
      ...count,
      maxSampleBytes: finished.sampleBytes.reduce((most, bytes) => Math.max(most, bytes), 0),
      classCounts,
      fieldCounts,
      quarantined,
    },
  };
}

/** Adds to a count that begins at 0. */
export function addTo<Key>(counts: Map<Key, number>, key: Key, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more);
}

function sampleAt(plan: PackPlan, files: FileTable, sample: number): PlannedSample {
  const members: { path: string; bytes: number }[] = [];
  for (let i = plan.fileStart[sample]!; i < plan.fileStart[sample + 1]!; i++) {
    const file = plan.files[i]!;
    members.push({ path: pathAt(files, file), bytes: files.bytes[file]! });
  }
  return { files: members, cls: plan.cls[sample]! };
}

function sourceBytes(sample: PlannedSample): number {
  return sample.files.reduce((sum, { bytes }) => sum + Math.max(0, bytes), 0);
}

function keepRows(columns: ShardJob['columns'], kept: readonly number[]): ShardIndex['columns'] {
  return new Map([...columns].map(([name, values]) => [name, kept.map((row) => values[row] ?? null)]));
}

/** The error that ends a pack at a bad file. */
export function badFile(bad: Error, path: string): BadFileError {
  const message = `${bad.message} Or have such files left out and listed in quarantine.jsonl: --on-bad quarantine.`;
  return new BadFileError({ path }, message, { cause: bad });
}

/** What the system says when there is no room: on the disk, in the user's share of it, or in one file. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

function asDiskFull(error: unknown, output: string): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!NO_ROOM.has((cause as NodeJS.ErrnoException).code ?? '')) continue;
    const message = `The disk of ${output} is full (${cause.message}); make room, or pack to another disk.`;
    return new DiskFullError({ path: output }, message, { cause: error });
  }
  return error;
}
