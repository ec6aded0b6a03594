import { countOf, FileChangedError, ShardIndexError } from '@shardtool/base';
import {
  buildShardIndex,
  layoutWith,
  openToConvert,
  readShardIndex,
  type ShardIndex,
  type Source,
  walkShardToCopy,
} from '@shardtool/format';
import { entryAt, isRemote } from '@shardtool/storage';
import type { DatasetShard } from '../shard/dataset-shards.js';

/** The index of a shard to convert: the one next to it, or one made from the shard itself. */
export interface FoundIndex {
  readonly index: ShardIndex;
  /**
   * True if the index was made from headers alone. It then lacks image sizes and the classes in class fields, and
   * checksums unless the layout stores them.
   */
  readonly isWalked: boolean;
  readonly skippedEntries: number;
  readonly skippedLinks: number;
  /** Version of the shard from which the index was made, if its storage has versions. */
  readonly version?: string | undefined;
  /** The shard, if it was walked. The caller closes it. */
  readonly source: Source | null;
}

/**
 * Finds the index of a shard. Unless `isWhole`, it is made without the payloads of a local file, which the caller reads
 * once anyway. A remote shard is always read as a whole, so that payloads are compared with those of a second transfer.
 * Throws ShardIndexError for an index of another pack, and the errors of `buildShardIndex`.
 */
export async function findIndex(input: DatasetShard, isWhole: boolean): Promise<FoundIndex> {
  const { format, path, reading, storage, indexPath, record } = input;
  if (indexPath !== null) {
    const index = await readShardIndex(indexPath, undefined, storage);
    if (record !== null && record.samples !== index.samples) throw wrongIndex(input, index.samples);
    return { index, isWalked: false, ...skippedBy({ entries: 0, links: 0 }), source: null };
  }
  const version = isRemote(path) ? undefined : (await entryAt(path))?.version;
  const source = await openToConvert(format, path, reading, storage);
  try {
    const layout = await layoutWith(format, reading);
    if (version !== undefined && !isWhole) {
      const skipped = { entries: 0, links: 0 };
      const index = await walkShardToCopy(layout, source, counting(skipped));
      if (index !== null) return { index, isWalked: true, ...skippedBy(skipped), version, source };
    }
    const skipped = { entries: 0, links: 0 };
    const index = await buildShardIndex(layout, source, counting(skipped));
    // This source may have kept bytes of a remote shard, and the caller must not compare them with themselves.
    await source.close();
    return { index, isWalked: false, ...skippedBy(skipped), version: version ?? source.version, source: null };
  } catch (error) {
    await source.close();
    throw error;
  }
}

interface Skipped {
  entries: number;
  links: number;
}

function counting(skipped: Skipped) {
  return (_name: string, _offset: number, kind?: 'link'): void => {
    if (kind === 'link') skipped.links++;
    else skipped.entries++;
  };
}

function skippedBy({ entries, links }: Skipped): Pick<FoundIndex, 'skippedEntries' | 'skippedLinks'> {
  return { skippedEntries: entries, skippedLinks: links };
}

function wrongIndex({ name, indexPath, record }: DatasetShard, found: number): ShardIndexError {
  const message = `${indexPath} has ${countOf(found, 'sample')}, but according to dataset.json ${name} has ${record!.samples}: one of the two belongs to another pack; restore it.`;
  return new ShardIndexError({ shard: name, path: indexPath! }, message);
}

/**
 * Throws {@link FileChangedError} if a walked shard was changed or replaced in the meantime. Otherwise its payloads are checked
 * by their checksums.
 */
export async function checkSame(input: DatasetShard, { isWalked, version }: FoundIndex): Promise<void> {
  if (isWalked && (await entryAt(input.path))?.version !== version) throw changed(input);
}

/** The error for a shard that was changed or replaced while it was converted. */
export function changed({ name: shard, path }: Pick<DatasetShard, 'name' | 'path'>): FileChangedError {
  const message = `${path} has changed while it was converted; wait until it is written, then convert again.`;
  return new FileChangedError({ shard, path }, message);
}
