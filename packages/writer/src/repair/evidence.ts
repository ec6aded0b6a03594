import { readFile } from 'node:fs/promises';
import { crc32Hex, FileError, isLostOnDisk, ShardIndexError, ShardtoolError } from '@shardtool/base';
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

/** All that is left of a shard that something is wrong with. */
export interface Evidence {
  /** The index, or the columns of it that are proven; an empty one where nothing is left of it. */
  readonly index: SalvagedIndex;
  /** The open shard; null where there is no such file. Whoever gathers it closes it. */
  readonly source: Source | null;
  /** The file is byte for byte as the manifest says: everything that is found in it is right. */
  readonly isFileWhole: boolean;
  /** It has as many bytes as the manifest says: nothing in it has moved. */
  readonly isOfRecordedSize: boolean;
}

const NOTHING: SalvagedIndex = { samples: 0, fields: new Map(), columns: new Map(), columnTypes: new Map() };

/**
 * Looks at a shard and its index. Throws {@link FileError} where one of them is there and cannot be opened,
 * {@link VersionError} where a newer version wrote the index.
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
 * The proven columns of the index at `path`. Throws {@link FileError} where it is there and cannot be read, VersionError where a
 * newer version wrote it.
 */
export async function readWhatIsLeft(path: string): Promise<SalvagedIndex> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    // A disk that cannot read it any more has lost it; one that nobody may read has not.
    if (['ENOENT', 'EIO'].includes((cause as NodeJS.ErrnoException).code ?? '')) return NOTHING;
    throw new FileError({ path }, `${path} cannot be read (${(cause as Error).message}).`, { cause });
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
    // A disk that cannot read some of it gives the rest.
    if (isLostOnDisk(error)) return false;
    throw error;
  }
}

/** Where the samples are that can be found in a damaged shard without its index, in the order of the file. */
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
  // LMDB has the keys in their own order; large values lie in the order of the pack.
  return [...found.values()].sort((a, b) => a.offset - b.offset);
}

/** Two parts of one sample; where both have a field the first stays. */
export function joined(a: SamplePosition, b: SamplePosition): SamplePosition {
  const more = b.fields.filter(({ name }) => !a.fields.some((field) => field.name === name));
  return { ...a, bytes: Math.max(a.offset + a.bytes, b.offset + b.bytes) - a.offset, fields: [...a.fields, ...more] };
}

/** Whether the values of an LMDB shard are images alone: a map begins before its first field. */
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
