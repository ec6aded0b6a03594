import { readFile } from 'node:fs/promises';
import { crc32Hex, FileError, isLostOnDisk, reasonOf, ShardIndexError, ShardtoolError } from '@shardtool/base';
import {
  asSalvaged,
  decodeShardIndex,
  isImageAlone,
  layoutOf,
  openSource,
  type SalvagedIndex,
  type SamplePosition,
  type Source,
  salvageShardIndex,
  type WrittenLayout,
} from '@shardtool/format';
import { FrontToBack } from '../check/front-to-back.js';
import type { DatasetShard } from '../shard/dataset-shards.js';

/** Everything that is left of a damaged shard. */
export interface Evidence {
  /** The index, or its verified columns; an empty index if none are left. */
  readonly index: SalvagedIndex;
  /** The open shard; null if the file is missing. The caller must close it. */
  readonly source: Source | null;
  /** True if the file equals the manifest's record byte for byte, so that all its contents are valid. */
  readonly isFileWhole: boolean;
  /** True if the file has the recorded size, so that nothing in it has moved. */
  readonly isOfRecordedSize: boolean;
}

const NOTHING: SalvagedIndex = { samples: 0, fields: new Map(), columns: new Map(), columnTypes: new Map() };

/**
 * Examines a shard and its index. Throws {@link FileError} if one of them exists but cannot be opened, and {@link
 * VersionError} if a newer version wrote the index.
 */
export async function gatherEvidence(shard: DatasetShard): Promise<Evidence> {
  const index = await readWhatIsLeft(shard.indexPath!);
  const source = await openIfThere(shard.path);
  if (source === null) return { index, source, isFileWhole: false, isOfRecordedSize: false };
  try {
    const isOfRecordedSize = source.size === shard.record!.bytes;
    return { index, source, isFileWhole: isOfRecordedSize && (await isAsRecorded(source, shard)), isOfRecordedSize };
  } catch (error) {
    await source.close();
    throw error;
  }
}

/**
 * Returns the verified columns of the index at `path`. Throws {@link FileError} if it exists but cannot be read, and
 * VersionError if a newer version wrote it.
 */
export async function readWhatIsLeft(path: string): Promise<SalvagedIndex> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    // After a disk error the index is lost; without permission to read it, it is not.
    if (['ENOENT', 'EIO'].includes((cause as NodeJS.ErrnoException).code ?? '')) return NOTHING;
    throw new FileError({ path }, `${path} cannot be read: ${reasonOf(cause)}.`, { cause });
  }
  try {
    const index = decodeShardIndex(bytes, path);
    return asSalvaged(index, index.columnTypes ?? new Map());
  } catch (error) {
    if (!(error instanceof ShardIndexError)) throw error;
    return salvageShardIndex(bytes) ?? NOTHING;
  }
}

async function openIfThere(path: string): Promise<Source | null> {
  try {
    return await openSource(path);
  } catch (error) {
    const { cause } = error as FileError;
    if (error instanceof FileError && (cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function isAsRecorded(source: Source, { record }: DatasetShard): Promise<boolean> {
  try {
    return crc32Hex(await new FrontToBack(source).crc32()) === record!.crc32;
  } catch (error) {
    // After a disk error, the rest of the file can still be read.
    if (isLostOnDisk(error)) return false;
    throw error;
  }
}

/** Finds the samples of a damaged shard without its index, in the order of the file. */
export async function findSamples(source: Source | null, layout: WrittenLayout): Promise<readonly SamplePosition[]> {
  const found = new Map<string, SamplePosition>();
  try {
    for await (const sample of source === null ? [] : layout.salvage(source)) {
      const before = found.get(sample.key);
      found.set(sample.key, before === undefined ? sample : joined(before, sample));
    }
  } catch (error) {
    if (!isLostOnDisk(error)) throw error;
  }
  // LMDB sorts its keys, but large values are in the order of the pack.
  return [...found.values()].sort((a, b) => a.offset - b.offset);
}

/** Joins two parts of one sample. If both have a field, the first one counts. */
export function joined(a: SamplePosition, b: SamplePosition): SamplePosition {
  const more = b.fields.filter(({ name }) => !a.fields.some((field) => field.name === name));
  return { ...a, bytes: Math.max(a.offset + a.bytes, b.offset + b.bytes) - a.offset, fields: [...a.fields, ...more] };
}

/** True if the values of an LMDB shard are images alone. A map would start before its first field. */
export async function storesImagesAlone(
  source: Source | null,
  { format }: DatasetShard,
  { offset: spans, fields }: SalvagedIndex,
): Promise<boolean> {
  if (format !== 'lmdb') return false;
  for (const { offset } of fields.values()) {
    if (offset !== undefined && spans !== undefined && offset.some((at, row) => at === spans[row])) return true;
  }
  if (source === null) return false;
  try {
    for await (const sample of (await layoutOf(format)).salvage(source)) return isImageAlone(sample);
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
  }
  return false;
}
