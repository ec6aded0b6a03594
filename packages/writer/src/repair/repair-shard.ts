import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { FileError, SampleSizeError, ShardtoolError } from '@shardtool/base';
import {
  asSalvaged,
  type ColumnType,
  type ColumnValue,
  classNumber,
  headerOf,
  imageFieldOf,
  layoutOf,
  lmdbImages,
  type SalvagedIndex,
  type ShardIndex,
  sampleTooLarge,
  sidecarPath,
  type WrittenLayout,
  writeShardIndex,
  writtenLayoutOf,
} from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import { isRemote, type StorageOptions } from '@shardtool/storage';
import { longestSpan, totalsOf } from '../check/check-totals.js';
import { asDiskFull } from '../disk-full.js';
import type { OtherIndex } from '../options.js';
import type { QuarantinedSample } from '../output/quarantine.js';
import { makeCropIndex } from '../shard/crop-index.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { goesInPieces, putLargeSample } from '../shard/large-sample.js';
import { createShard, type ShardRecord } from '../shard/new-shard.js';
import { md5OfFile, writeDaliIndex } from '../shard/other-indexes.js';
import { type PayloadOf, putSample, type SampleFacts } from '../shard/put-sample.js';
import { shardPaths } from '../shard/shard-paths.js';
import { type Evidence, findSamples, gatherEvidence, storesImagesAlone } from './evidence.js';
import { type ExpectedSample, expectedSamples } from './expected-samples.js';
import { PackedBucket } from './packed-bucket.js';
import { type PackedFiles, PackedFolder } from './packed-folder.js';
import { type KnownFacts, type RecoveredField, type RecoverySetting, recoverSample } from './recover-sample.js';
import { hadNever, type IndexFacts, type RemadeIndex, remadeIndex } from './remade-index.js';

/** What all shards of a repair have in common. */
export interface RepairSetting extends IndexFacts {
  /** Folder for the new shards. */
  readonly workFolder: string;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly otherIndexes: readonly OtherIndex[];
  /** Fields that some samples of the dataset have. */
  readonly optionalFields: readonly string[];
  /** True if dataset.json is unchanged, so that its records of shards are valid. */
  readonly isManifestWhole: boolean;
  /** Folder or remote location that the dataset was packed from; null if it is not given. */
  readonly source: string | null;
  /** Options for requests to a remote source. */
  readonly storage?: StorageOptions | undefined;
  readonly decode: boolean;
  /** Memory limit for a sample that cannot be written in pieces. */
  readonly maxSampleBytes: number;
}

/** Result of repairing a shard. */
export interface RepairedShard {
  /** The new shard in the work folder; null if no sample is left. */
  readonly record: ShardRecord | null;
  /** True if the work folder also has a new file; otherwise only the indexes are new. */
  readonly isFileNew: boolean;
  readonly takenOut: readonly QuarantinedSample[];
  /** Number of samples restored from the source folder, completely or in part. */
  readonly restored: number;
  /** Samples that were kept although no checksum verifies all of them. */
  readonly unproven: readonly QuarantinedSample[];
  /** Names of index columns with lost values: paths, labels, classes, and fields that samples may have had. */
  readonly lostColumns: readonly string[];
}

/**
 * Rebuilds a damaged shard in the work folder. If its file is unchanged, only its index is rebuilt. Otherwise it is
 * written from everything that is left of the shard, its index, and the files that it was packed from. If nothing is
 * lost it equals the packed shard byte for byte. Throws {@link FileError} if something exists but cannot be opened,
 * {@link SampleSizeError} for a sample that must be in memory and exceeds the limit, and DiskFullError.
 */
export async function repairShard(
  shard: DatasetShard,
  setting: RepairSetting,
  loadChecker: () => Promise<Checker>,
): Promise<RepairedShard> {
  const evidence = await gatherEvidence(shard);
  try {
    const remade = await remake(shard, evidence, setting);
    if (remade === null) return await rewriteShard(shard, evidence, setting, loadChecker);
    if (!setting.decode) return await writeIndexes(shard, remade, setting);
    const index = asSalvaged(remade.index, setting.columnTypes);
    const repaired = await rewriteShard(shard, { ...evidence, index }, setting, loadChecker);
    return { ...repaired, isFileNew: repaired.takenOut.length > 0, lostColumns: remade.lost };
  } finally {
    await evidence.source?.close();
  }
}

/** Rebuilds the index of an unchanged shard; null for any other. */
async function remake(
  shard: DatasetShard,
  { source, isFileWhole, index }: Evidence,
  setting: RepairSetting,
): Promise<RemadeIndex | null> {
  if (source === null || !isFileWhole) return null;
  try {
    return await remadeIndex(await layoutOf(shard.format), source, index, setting);
  } catch (error) {
    // The shard was already packed like this.
    if (error instanceof ShardtoolError && !(error instanceof FileError)) return null;
    throw error;
  }
}

/** Leaves the shard unchanged and writes its indexes. */
async function writeIndexes(
  { path, stem, format, record }: DatasetShard,
  { index, lost }: RemadeIndex,
  { workFolder, otherIndexes }: RepairSetting,
): Promise<RepairedShard> {
  const paths = shardPaths(await writtenLayoutOf(format), stem);
  try {
    await writeShardIndex(join(workFolder, paths.index), index);
    if (otherIndexes.includes('dali')) await writeDaliIndex(join(workFolder, paths.file), index);
    if (otherIndexes.includes('crops'))
      await makeCropIndex(sidecarPath('crops', join(workFolder, paths.file)), index, path);
  } catch (error) {
    throw asDiskFull(error, workFolder);
  }
  const md5 = otherIndexes.includes('wids') ? md5OfFile(path) : null;
  const { file, bytes, crc32: sum } = record!;
  const known = { file, bytes, crc32: Number.parseInt(sum, 16), md5 };
  return {
    record: recordOfIndex(known, index),
    isFileNew: false,
    takenOut: [],
    restored: 0,
    unproven: [],
    lostColumns: lost,
  };
}

/** Returns the record for dataset.json of a shard with this index. */
export function recordOfIndex(
  known: Pick<ShardRecord, 'file' | 'bytes' | 'crc32' | 'md5'>,
  index: Pick<ShardIndex, 'samples' | 'bytes' | 'fields' | 'cls'>,
): ShardRecord {
  const { classes: classCounts, fields: fieldCounts } = totalsOf(index);
  return { ...known, samples: index.samples, maxSampleBytes: longestSpan(index), classCounts, fieldCounts };
}

function packedFiles(source: string, { storage, maxSampleBytes }: RepairSetting): PackedFiles {
  return isRemote(source) ? new PackedBucket(source, storage, maxSampleBytes) : new PackedFolder(source);
}

async function rewriteShard(
  shard: DatasetShard,
  evidence: Evidence,
  setting: RepairSetting,
  loadChecker: () => Promise<Checker>,
): Promise<RepairedShard> {
  const { source, index } = evidence;
  const { decode, columnTypes, otherIndexes, workFolder, requiredFields, isManifestWhole, maxSampleBytes } = setting;
  const packed = setting.source === null ? null : packedFiles(setting.source, setting);
  const recovery: RecoverySetting = { shard: shard.name, source, packed, loadChecker, decode, maxSampleBytes };
  const isBare = await storesImagesAlone(source, shard, index);
  const layout = isBare ? lmdbImages : await writtenLayoutOf(shard.format);
  const found = await findSamples(source, layout);
  const recorded = isManifestWhole ? shard.record!.samples : null;
  const { samples, lost } = expectedSamples(evidence, found, requiredFields, recorded);
  const named = (key: string, row: number, reason: string): QuarantinedSample => {
    return { shard: shard.name, key, path: index.source?.[row] ?? '', reason };
  };
  const takenOut: QuarantinedSample[] = [];
  const unproven: QuarantinedSample[] = [];
  let restored = 0;
  const rows: number[] = [];
  // Everything that was packed can be packed again, of any size, because tars are written in pieces.
  const target = { output: workFolder, layout, columnTypes, otherIndexes, maxSampleBytes: Number.POSITIVE_INFINITY };
  const record = await createShard(target, shard.stem, samples.length, async (writer, newRows) => {
    for (const sample of samples) {
      const facts = factsOf(sample, evidence);
      const recovered = await recoverSample(sample, facts, recovery);
      const trouble = 'reason' in recovered ? recovered.reason : await write(sample, facts, recovered.fields);
      if ('reason' in recovered || trouble !== null) {
        takenOut.push(named(sample.key, sample.row, trouble!));
        continue;
      }
      rows.push(sample.row);
      if (recovered.isRestored) restored++;
      const doubts = [
        ...(sample.isKeyProven ? [] : ['its key']),
        ...recovered.unproven.map((name) => `field "${name}"`),
      ];
      if (doubts.length > 0)
        unproven.push(named(sample.key, sample.row, `no checksum is left of ${doubts.join(', ')}`));
    }
    const labels = [...columnTypes.keys()].map(
      (name) => [name, rows.map((row) => labelAt(evidence, name, row))] as const,
    );
    return new Map(labels);

    async function write(
      sample: ExpectedSample,
      facts: KnownFacts,
      fields: readonly RecoveredField[],
    ): Promise<string | null> {
      const { key } = sample;
      const stored = fields.map(({ name, payload }) => payload.as(name));
      const bytes = stored.reduce((sum, field) => sum + field.bytes, 0);
      const factsIn = (payloadOf: PayloadOf) => rowFacts(sample, facts, stored, payloadOf, evidence);
      try {
        if (goesInPieces(bytes, writer)) {
          const seen = [imageFieldOf(stored), 'cls'].filter((name) => name !== undefined);
          await putLargeSample(writer, newRows, key, stored, seen, factsIn);
        } else {
          if (bytes > maxSampleBytes) throw sampleTooLarge(shard.name, key, bytes, maxSampleBytes);
          putSample(writer, newRows, key, stored, factsIn);
        }
        return null;
      } catch (error) {
        // A damaged name may be invalid in a shard.
        const isName =
          error instanceof ShardtoolError && !(error instanceof FileError || error instanceof SampleSizeError);
        if (!isName) throw error;
        return error.message;
      }
    }
  });
  for (const { key, row, reason } of lost) takenOut.push(named(key, row, reason));
  const kept = record.samples > 0 ? record : null;
  if (kept === null) removeShard(workFolder, layout, shard.stem);
  const lostColumns = kept === null ? [] : lostFrom(index, rows, isBare, setting);
  return { record: kept, isFileNew: true, takenOut, restored, unproven, lostColumns };
}

function factsOf({ row }: ExpectedSample, { index }: Evidence): KnownFacts {
  return { source: index.source?.[row] ?? '', cls: index.cls?.[row] ?? -1 };
}

function labelAt({ index }: Evidence, name: string, row: number): ColumnValue {
  return index.columns.get(name)?.[row] ?? null;
}

/** Returns the facts of the index, and for lost ones those of the sample itself. */
function rowFacts(
  { row }: ExpectedSample,
  { source }: KnownFacts,
  fields: readonly { readonly name: string }[],
  payloadOf: PayloadOf,
  { index }: Evidence,
): SampleFacts {
  const image = payloadOf(imageFieldOf(fields));
  const header = image === undefined ? null : headerOf(image);
  const classField = payloadOf('cls');
  return {
    source,
    width: index.width?.[row] ?? header?.width ?? 0,
    height: index.height?.[row] ?? header?.height ?? 0,
    orientation: index.orientation?.[row] ?? header?.orientation ?? 1,
    cls: index.cls?.[row] ?? (classField === undefined ? -1 : classNumber(classField)),
  };
}

/** Columns with lost values for the samples of these rows. */
function lostFrom(
  index: SalvagedIndex,
  rows: readonly number[],
  isBare: boolean,
  { columnTypes, optionalFields, hasClasses }: RepairSetting,
): string[] {
  const areAllKnown = !rows.includes(-1);
  const own = [
    ...(index.source === undefined || !areAllKnown ? ['source'] : []),
    ...(isBare && hasClasses && (index.cls === undefined || !areAllKnown) ? ['cls'] : []),
  ];
  const isLost = (name: string) => !index.columns.has(name) && !hadNever(index, name);
  const labels = [...columnTypes.keys()].filter((name) => isLost(name) || !areAllKnown);
  // It is no longer known which samples had them.
  const isForgotten = (name: string) =>
    index.fields.size === 0 || (index.fields.has(name) && index.fields.get(name)!.present === undefined);
  return [...own, ...optionalFields.filter((name) => isForgotten(name)), ...labels];
}

function removeShard(folder: string, layout: WrittenLayout, stem: string): void {
  const { file, folder: own, sidecars } = shardPaths(layout, stem);
  for (const path of [own ?? file, ...sidecars]) rmSync(join(folder, path), { force: true, recursive: true });
}
