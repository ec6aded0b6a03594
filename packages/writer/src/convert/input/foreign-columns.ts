import {
  type ColumnType,
  columnTypeOf,
  layoutWith,
  type Manifest,
  openToConvert,
  readShardIndex,
  type ShardIndex,
  walkShardIndex,
} from '@shardtool/format';
import type { DatasetShard } from '../../shard/dataset-shards.js';

/** Label column with the split of a sample, if shards are of several splits. */
export const SPLIT_COLUMN = 'split';

/**
 * Label columns of shards of other tools: those of their indexes and those stored in their layout. Each has a type that
 * fits all shards; a column that is text in one shard and numbers in another becomes text.
 */
export async function foreignColumns(shards: readonly DatasetShard[]): Promise<Manifest['columns']> {
  const types = new Map<string, ColumnType>();
  for (const shard of shards) {
    for (const [name, values] of await labelsOf(shard)) {
      if (values.every((value) => value === null)) {
        types.set(name, types.get(name) ?? 'string');
        continue;
      }
      const type = columnTypeOf(name, values);
      const known = types.get(name);
      types.set(name, known === undefined ? type : merged(known, type));
    }
  }
  if (shards.some(({ split }) => split !== undefined)) types.set(SPLIT_COLUMN, types.get(SPLIT_COLUMN) ?? 'string');
  return [...types].map(([name, type]) => ({ name, type }));
}

async function labelsOf({
  indexPath,
  format,
  path,
  storage,
  record,
  reading,
}: DatasetShard): Promise<ShardIndex['columns']> {
  if (record !== null) return new Map();
  if (indexPath !== null) return (await readShardIndex(indexPath, { parts: ['columns'] }, storage)).columns;
  const layout = await layoutWith(format, reading);
  // Tars and msgpack have only fields. LMDB has the texts of OCR datasets.
  if (!layout.isOpenedByWalk && layout.name !== 'lmdb') return new Map();
  const source = await openToConvert(format, path, reading, storage);
  try {
    return (await walkShardIndex(layout, source)).columns;
  } finally {
    await source.close();
  }
}

function merged(one: ColumnType, other: ColumnType): ColumnType {
  if (one === other) return one;
  const numeric: readonly ColumnType[] = ['int', 'double'];
  if (numeric.includes(one) && numeric.includes(other)) return 'double';
  return 'string';
}
