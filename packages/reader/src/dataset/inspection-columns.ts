/** The columns that `shardtool inspect` keeps beside a shard, as selections read them. */
import {
  contentOf,
  findSidecars,
  type InspectionFile,
  type PartOfIndex,
  readInspection,
  type ShardIndex,
} from '@shardtool/format';
import type { ShardFile } from './shard-file.js';

/** Prefix of the columns of an inspection, as used in `where`: `inspect.sharpness < 20`. */
export const INSPECT_PREFIX = 'inspect.';

/** An index, or what was read of one. */
export type IndexPieces = Pick<ShardIndex, 'samples'> & Partial<ShardIndex>;

/** Reads some columns of what lies beside a shard, or all; null where nothing does, or where it is of other images. */
export type LoadInspection = (wanted?: ReadonlySet<string>) => Promise<InspectionFile | null>;

/** {@link LoadInspection} of a shard, whose index says what its images are. */
export function inspectionSidecar(
  { path, storage }: Pick<ShardFile, 'path' | 'storage'>,
  loadFields: () => Promise<PartOfIndex<'fields'>>,
): LoadInspection {
  return async (wanted) => {
    const file = await findSidecars('inspection', path, storage);
    return file === null ? null : readInspection(file, contentOf(await loadFields()), wanted);
  };
}

/** The index of a shard with those columns of its inspection that are named; the same where none is, or it was not inspected. */
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
