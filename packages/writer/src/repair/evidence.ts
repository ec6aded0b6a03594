import { readFile } from 'node:fs/promises';
import {
  crc32Hex,
  FileError,
  layoutOf,
  openSource,
  readShardIndex,
  type SalvagedIndex,
  type SamplePosition,
  ShardtoolError,
  type Source,
  salvageShardIndex,
} from '@shardtool/format';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { FrontToBack } from '../verify/front-to-back.js';

/** All that is left of a shard that something is wrong with. */
export interface Evidence {
  /** The index, or the columns of it that are proven; an empty one where nothing is left of it. */
  readonly index: SalvagedIndex;
  /** The index is whole: nothing of it was lost. */
  readonly isIndexWhole: boolean;
  /** The open shard; null where there is no such file. Whoever gathers it closes it. */
  readonly source: Source | null;
  /** The file is byte for byte as the manifest says, so everything that is found in it is right. */
  readonly isFileWhole: boolean;
  /** Where the samples are that can be found in the shard without its index, by key, in the order of the file. */
  readonly found: ReadonlyMap<string, SamplePosition>;
}

const NOTHING: SalvagedIndex = { samples: 0, fields: new Map(), columns: new Map() };

/** Looks at a shard and its index. Throws {@link FileError} where the shard is there and cannot be opened. */
export async function gatherEvidence(shard: DatasetShard): Promise<Evidence> {
  const { index, isIndexWhole } = await readWhatIsLeft(shard.indexPath!);
  const source = await openIfThere(shard.path);
  if (source === null) return { index, isIndexWhole, source, isFileWhole: false, found: new Map() };
  try {
    const isFileWhole = await isAsRecorded(source, shard);
    return { index, isIndexWhole, source, isFileWhole, found: await findSamples(source, shard) };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function readWhatIsLeft(path: string): Promise<Pick<Evidence, 'index' | 'isIndexWhole'>> {
  try {
    return { index: await readShardIndex(path), isIndexWhole: true };
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    const bytes = await readFile(path).catch(() => new Uint8Array(0));
    return { index: salvageShardIndex(bytes) ?? NOTHING, isIndexWhole: false };
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
  if (source.size !== record!.bytes) return false;
  try {
    return crc32Hex(await new FrontToBack(source).crc32()) === record!.crc32;
  } catch (error) {
    // A disk that cannot read some of it gives the rest.
    if (error instanceof FileError) return false;
    throw error;
  }
}

async function findSamples(source: Source, { format }: DatasetShard): Promise<Map<string, SamplePosition>> {
  const found = new Map<string, SamplePosition>();
  try {
    for await (const sample of (await layoutOf(format)).salvage(source)) {
      const before = found.get(sample.key);
      found.set(sample.key, before === undefined ? sample : joined(before, sample));
    }
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
  // LMDB has the keys in their own order; large values lie in the order of the pack.
  return format === 'lmdb' ? new Map([...found].sort(([, a], [, b]) => a.offset - b.offset)) : found;
}

/** Two parts of one sample; where both have a field the first stays. */
function joined(a: SamplePosition, b: SamplePosition): SamplePosition {
  const more = b.fields.filter(({ name }) => !a.fields.some((field) => field.name === name));
  return { ...a, bytes: Math.max(a.offset + a.bytes, b.offset + b.bytes) - a.offset, fields: [...a.fields, ...more] };
}
