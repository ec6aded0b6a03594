import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ColumnType,
  type ColumnValue,
  classNumber,
  crc32,
  FileError,
  headerOf,
  imageFieldOf,
  layoutOf,
  lmdbImages,
  ShardtoolError,
  type ShardWriter,
  type WrittenLayout,
} from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { QuarantinedSample } from '../output/quarantine.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { createShard, type ShardRecord } from '../shard/new-shard.js';
import type { OtherIndex } from '../shard/other-indexes.js';
import { shardPaths } from '../shard/shard-paths.js';
import type { SampleRow } from '../shard/shard-rows.js';
import { type Evidence, gatherEvidence } from './evidence.js';
import { type ExpectedSample, expectedSamples } from './expected-samples.js';
import { type RecoveredField, type RecoverySetting, recoverSample, type SampleFacts } from './recover-sample.js';
import { SourceFiles } from './source-files.js';

/** What all shards of a repair have in common. */
export interface RepairSetting {
  /** Where the new shards are made. */
  readonly workFolder: string;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly otherIndexes: readonly OtherIndex[];
  /** Fields that every sample of the dataset has. */
  readonly requiredFields: readonly string[];
  /** The folder that the dataset was packed from; null where it is not given. */
  readonly source: string | null;
  readonly decode: boolean;
}

/** What became of a shard. */
export interface RepairedShard {
  /** The new shard in the work folder; null where not one sample is left. */
  readonly record: ShardRecord | null;
  readonly takenOut: readonly QuarantinedSample[];
  /** Samples that came from the packed folder, in whole or in part. */
  readonly restored: number;
  /** Samples that were kept although no checksum is left that proves them. */
  readonly unproven: number;
  /** Columns of the index that are lost, by name: paths, labels. */
  readonly lostColumns: readonly string[];
  /** The shard's file was as it was packed: only its index is new. */
  readonly isFileWhole: boolean;
}

/**
 * Writes a shard anew, from everything that is left of it, of its index, and of the files that it was packed from. Where
 * nothing is lost the new one has the bytes of the one that was packed. Throws {@link FileError} where something is there
 * and cannot be opened, and what {@link createShard} throws.
 */
export async function repairShard(
  shard: DatasetShard,
  setting: RepairSetting,
  loadChecker: () => Promise<Checker>,
): Promise<RepairedShard> {
  const evidence = await gatherEvidence(shard);
  try {
    return await writeAnew(shard, evidence, setting, loadChecker);
  } finally {
    await evidence.source?.close();
  }
}

async function writeAnew(
  shard: DatasetShard,
  evidence: Evidence,
  setting: RepairSetting,
  loadChecker: () => Promise<Checker>,
): Promise<RepairedShard> {
  const { source, isFileWhole, index, isIndexWhole } = evidence;
  const { decode, columnTypes, otherIndexes, workFolder } = setting;
  const files = setting.source === null ? null : new SourceFiles(setting.source);
  const recovery: RecoverySetting = { source, isFileWhole, files, loadChecker, decode };
  const samples = expectedSamples(evidence, setting.requiredFields);
  const layout = await layoutFor(shard, evidence);
  const takenOut: QuarantinedSample[] = [];
  const count = { restored: 0, unproven: 0 };
  const rows: number[] = [];
  const target = { output: workFolder, layout, columnTypes, otherIndexes };
  const record = await createShard(target, shard.stem, samples.length, async (writer, newRows) => {
    for (const sample of samples) {
      const facts = factsOf(sample, evidence);
      const found = await recoverSample(sample, facts, recovery);
      const trouble = 'reason' in found ? found.reason : write(sample, facts, found.fields);
      if (trouble !== null) {
        takenOut.push({ shard: shard.name, key: sample.key, path: facts.source, reason: trouble });
      } else if (!('reason' in found)) {
        rows.push(sample.row);
        if (found.isRestored) count.restored++;
        if (found.isUnproven) count.unproven++;
      }
    }
    const labels = [...columnTypes.keys()].map(
      (name) => [name, rows.map((row) => labelAt(evidence, name, row))] as const,
    );
    return new Map(labels);

    function write(sample: ExpectedSample, facts: SampleFacts, fields: readonly RecoveredField[]): string | null {
      try {
        newRows.add(writeSample(writer, sample, facts, fields, evidence));
        return null;
      } catch (error) {
        writer.discard();
        // A damaged name may be one that no shard can have.
        if (!(error instanceof ShardtoolError) || error instanceof FileError) throw error;
        return error.message;
      }
    }
  });
  const lostColumns = isIndexWhole ? [] : lostFrom(index, columnTypes);
  const kept = record.samples > 0 ? record : null;
  if (kept === null) removeShard(workFolder, layout, shard.stem);
  return { record: kept, takenOut, ...count, lostColumns, isFileWhole };
}

/** The layout, and of LMDB the one whose values are images where this shard's are. */
async function layoutFor({ format }: DatasetShard, { index, found }: Evidence): Promise<WrittenLayout> {
  if (format !== 'lmdb') return layoutOf(format);
  // A map begins before its first field.
  const spans = [...found.values()].map(({ offset, fields }) => fields.some((field) => field.offset === offset));
  for (const { offset } of index.fields.values()) {
    if (offset !== undefined && index.offset !== undefined)
      spans.push(offset.some((at, row) => at === index.offset![row]));
  }
  return spans.includes(true) ? lmdbImages : layoutOf(format);
}

function factsOf({ row }: ExpectedSample, { index }: Evidence): SampleFacts {
  return { source: index.source?.[row] ?? '', cls: index.cls?.[row] ?? -1 };
}

function labelAt({ index }: Evidence, name: string, row: number): ColumnValue {
  return index.columns.get(name)?.[row] ?? null;
}

function writeSample(
  writer: ShardWriter,
  { key, row }: ExpectedSample,
  facts: SampleFacts,
  fields: readonly RecoveredField[],
  { index }: Evidence,
): SampleRow {
  const sizes = fields.map(({ name, payload }) => ({ name, bytes: payload.length }));
  const sums = fields.map(({ payload }) => crc32(payload));
  const places = writer.begin(key, sizes);
  for (const [i, { payload }] of fields.entries()) places[i]!.set(payload);
  writer.commit(sums);
  const payloadOf = (name: string | undefined) => fields.find((field) => field.name === name)?.payload;
  const image = payloadOf(imageFieldOf(fields));
  const header = image === undefined ? null : headerOf(image);
  const classField = payloadOf('cls');
  return {
    key,
    source: facts.source,
    fields: sizes,
    crc32: sums,
    width: index.width?.[row] ?? header?.width ?? 0,
    height: index.height?.[row] ?? header?.height ?? 0,
    orientation: index.orientation?.[row] ?? header?.orientation ?? 1,
    cls: index.cls?.[row] ?? (classField === undefined ? -1 : classNumber(classField)),
  };
}

/** Columns that nothing but the index knows. */
function lostFrom(index: Evidence['index'], columnTypes: ReadonlyMap<string, ColumnType>): string[] {
  const labels = [...columnTypes.keys()].filter((name) => !index.columns.has(name));
  return [...(index.source === undefined ? ['source'] : []), ...labels];
}

function removeShard(folder: string, layout: WrittenLayout, stem: string): void {
  const { file, folder: own, index, daliIndex } = shardPaths(layout, stem);
  for (const path of [own ?? file, index, daliIndex]) rmSync(join(folder, path), { force: true, recursive: true });
}
