/** The columns of an inspection next to a shard, as selections read them. */
import {
  contentOf,
  findSidecars,
  type InspectionFile,
  type PartOfIndex,
  readInspection,
  type ShardIndex,
} from '@shardtool/format';
import type { ShardFile } from './shards/shard-file.js';

/** Prefix of the columns of an inspection, as used in `where`: `inspect.sharpness < 20`. */
export const INSPECT_PREFIX = 'inspect.';

/** An index, or the parts of it that were read. */
export type IndexPieces = Pick<ShardIndex, 'samples'> & Partial<ShardIndex>;

/**
 * Reads some or all columns of the inspection of a shard. Null if there is no inspection, or if it was made of other
 * images.
 */
export type LoadInspection = (wanted?: ReadonlySet<string>) => Promise<InspectionFile | null>;

/**
 * Returns {@link LoadInspection} for a shard. Its index identifies the images. The checksums in the index of a packed shard
 * (`isPacked`) identify them for certain, so that the times of the files do not matter.
 */
export function inspectionSidecar(
  { path, storage }: Pick<ShardFile, 'path' | 'storage'>,
  loadFields: () => Promise<PartOfIndex<'fields'>>,
  { isPacked = false } = {},
): LoadInspection {
  return async (wanted) => {
    const file = await findSidecars('inspection', path, storage, { mayBeOlder: isPacked });
    return file === null ? null : readInspection(file, contentOf(await loadFields()), wanted);
  };
}

/**
 * Returns the index of the shard with the named columns of its inspection, or the same index if no column is named or
 * there is no inspection.
 */
export async function withInspection<Index extends IndexPieces>(
  index: Index,
  { loadInspection }: Pick<ShardFile, 'loadInspection'>,
  names: ReadonlySet<string>,
): Promise<Index> {
  if (loadInspection === undefined || ![...names].some((name) => name.startsWith(INSPECT_PREFIX))) return index;
  const found = await loadInspection(names);
  if (found === null) return index;
  const more = Array.from(found.columns, ([name, { values }]) => [name, values] as const);
  return { ...index, columns: new Map([...(index.columns ?? []), ...more]) };
}
