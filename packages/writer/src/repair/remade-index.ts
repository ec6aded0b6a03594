import { range } from '@shardtool/base';
import {
  buildShardIndex,
  type ColumnType,
  type ColumnValue,
  type FieldColumns,
  isImageAlone,
  type SalvagedIndex,
  type SamplePosition,
  type ShardIndex,
  type ShardLayout,
  type Source,
} from '@shardtool/format';

/** What all indexes of the dataset have in common. */
export interface IndexFacts {
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  /** Fields that every sample of the dataset has. */
  readonly requiredFields: readonly string[];
  readonly hasClasses: boolean;
}

export interface RemadeIndex {
  readonly index: ShardIndex;
  /** Names of columns whose values are lost, completely or in part. */
  readonly lost: readonly string[];
}

/**
 * Rebuilds the index of a shard whose file is unchanged. Everything is read from the shard, except paths, labels, and
 * the classes of shards that store images alone. Those come from the verified columns of the old index, for rows that
 * are known to belong to the samples. Throws DamagedShardError if the shard cannot be walked, and FileError.
 */
export async function remadeIndex(
  layout: ShardLayout,
  source: Source,
  old: SalvagedIndex,
  facts: IndexFacts,
): Promise<RemadeIndex> {
  const made = await buildShardIndex(withNames(layout, old, facts), source);
  const oldRows = rowsOf(made, old, layout.name !== 'lmdb');
  const order = orderOf(made, oldRows);
  const rows = order.map((row) => oldRows[row]!);
  const areAllKnown = !rows.includes(-1);
  const isBare = isImageOnly(made);
  /** The old value of each sample, or the one in the shard. */
  const kept = <T>(values: ArrayLike<T> | undefined, other: (row: number) => T): T[] =>
    order.map((row, i) => (values === undefined || rows[i] === -1 ? other(row) : values[rows[i]!]!));
  const lost: string[] = [];
  const isLost = (values: unknown) => made.samples > 0 && (values === undefined || !areAllKnown);
  if (isLost(old.source)) lost.push('source');
  if (isBare && facts.hasClasses && isLost(old.cls)) lost.push('cls');
  const columns = new Map<string, readonly ColumnValue[]>();
  for (const name of facts.columnTypes.keys()) {
    const values = old.columns.get(name);
    if (isLost(values) && !(areAllKnown && hadNever(old, name))) lost.push(name);
    columns.set(
      name,
      kept<ColumnValue>(values, () => null),
    );
  }
  const index: ShardIndex = {
    samples: made.samples,
    key: order.map((row) => made.key[row]!),
    source: kept(old.source, () => ''),
    offset: Float64Array.from(order, (row) => made.offset[row]!),
    bytes: Float64Array.from(order, (row) => made.bytes[row]!),
    fields: new Map([...made.fields].map(([name, field]) => [name, inOrder(field, order)])),
    width: Int32Array.from(kept(old.width, (row) => made.width[row]!)),
    height: Int32Array.from(kept(old.height, (row) => made.height[row]!)),
    orientation: Uint8Array.from(kept(old.orientation, (row) => made.orientation[row]!)),
    cls: Int32Array.from(kept(old.cls, (row) => made.cls[row]!)),
    columns,
    columnTypes: facts.columnTypes,
  };
  return { index, lost };
}

/** True if an index was written before the dataset had a column. */
export function hadNever({ samples, columnTypes }: SalvagedIndex, column: string): boolean {
  return samples > 0 && !columnTypes.has(column);
}

/** Row of the old index for each sample of the shard; -1 if it is not known. */
function rowsOf(made: ShardIndex, old: SalvagedIndex, isInFileOrder: boolean): number[] {
  const none = new Array<number>(made.samples).fill(-1);
  const matched = matches(made, old);
  if (matched !== null) return matched.map((oldRow, row) => (contradicts(made, row, old, oldRow) ? -1 : oldRow));
  // If no positions are left, the rows are in the order of the file.
  if (!isInFileOrder || old.samples !== made.samples) return none;
  return none.some((_, row) => contradicts(made, row, old, row)) ? none : none.map((_, row) => row);
}

/** Matches by key, or by a position; null if none of these columns is left. */
function matches(made: ShardIndex, old: SalvagedIndex): number[] | null {
  const by = <T>(theirs: ArrayLike<T>, ours: ArrayLike<T>): number[] => {
    const rowOf = new Map(Array.from(theirs, (value, row) => [value, row]));
    return Array.from(ours, (value) => rowOf.get(value) ?? -1);
  };
  if (old.key !== undefined) return by(old.key, made.key);
  if (old.offset !== undefined) return by(old.offset, made.offset);
  let isKnown = false;
  const rows = new Array<number>(made.samples).fill(-1);
  for (const [name, { offset }] of old.fields) {
    const ours = made.fields.get(name)?.offset;
    if (offset === undefined || ours === undefined) continue;
    isKnown = true;
    for (const [i, row] of by(offset, ours).entries()) if (rows[i] === -1 && ours[i]! >= 0) rows[i] = row;
  }
  return isKnown ? rows : null;
}

/** True if the old row contradicts the sample's content in the shard, so that it belongs to another pack. */
function contradicts(made: ShardIndex, row: number, old: SalvagedIndex, oldRow: number): boolean {
  if (oldRow === -1) return false;
  for (const [name, { present, crc32 }] of old.fields) {
    const field = made.fields.get(name);
    const isThere = field !== undefined && field.offset[row]! >= 0;
    if (present !== undefined && (present[oldRow] === 1) !== isThere) return true;
    if (isThere && crc32 !== undefined && crc32[oldRow] !== field.crc32?.[row]) return true;
  }
  return false;
}

/** Rows of the shard in the order of the old index if all are known, otherwise in the order of the file. */
function orderOf({ samples, offset }: ShardIndex, oldRows: readonly number[]): number[] {
  const by: ArrayLike<number> = oldRows.includes(-1) ? offset : oldRows;
  return range(samples).sort((a, b) => by[a]! - by[b]!);
}

function inOrder({ offset, bytes, crc32, msgpack }: FieldColumns, order: readonly number[]): FieldColumns {
  return {
    offset: Float64Array.from(order, (row) => offset[row]!),
    bytes: Float64Array.from(order, (row) => bytes[row]!),
    ...(crc32 && { crc32: Uint32Array.from(order, (row) => crc32[row]!) }),
    ...(msgpack && { msgpack: Uint8Array.from(order, (row) => msgpack[row]!) }),
  };
}

/** True if every sample is stored as its image alone. */
function isImageOnly({ samples, offset, fields }: ShardIndex): boolean {
  const starts = new Set([...fields.values()].flatMap((field) => [...field.offset]));
  return samples > 0 && offset.every((at) => starts.has(at));
}

/** Shards that store images alone have no field names; they come from the old index or the manifest. */
function withNames(layout: ShardLayout, old: SalvagedIndex, { requiredFields }: IndexFacts): ShardLayout {
  const rowOf = new Map<string | number, number>();
  for (const [row, at] of (old.key ?? old.offset ?? []).entries()) rowOf.set(at, row);
  const nameOf = (sample: SamplePosition): string | undefined => {
    if (requiredFields.length === 1) return requiredFields[0];
    const row = rowOf.get(old.key === undefined ? sample.offset : sample.key);
    const names = [...old.fields].filter(([, { present }]) => row !== undefined && present?.[row] === 1);
    return names.length === 1 ? names[0]![0] : undefined;
  };
  const named = (sample: SamplePosition): SamplePosition => {
    const name = isImageAlone(sample) ? nameOf(sample) : undefined;
    return name === undefined ? sample : { ...sample, fields: [{ ...sample.fields[0]!, name }] };
  };
  return {
    ...layout,
    async *samples(source, onSkipped) {
      for await (const batch of layout.samples(source, onSkipped)) yield batch.map(named);
    },
  };
}
