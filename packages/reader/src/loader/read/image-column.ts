import { type FieldColumns, imageFields, type ShardIndex } from '@shardtool/format';

/** The image of every sample of a shard, whichever field it is in. Offset -1 where a sample has none. */
const columns = new WeakMap<ShardIndex, Map<string, FieldColumns>>();

/** `image` names the field; without it each sample's first field of an image kind is taken, by name. */
export function imageColumn(index: ShardIndex, image: string | undefined): FieldColumns {
  const name = image ?? '';
  let made = columns.get(index);
  if (made === undefined) {
    made = new Map();
    columns.set(index, made);
  }
  let column = made.get(name);
  if (column === undefined) {
    column = makeColumn(index, image);
    made.set(name, column);
  }
  return column;
}

function makeColumn(index: ShardIndex, image: string | undefined): FieldColumns {
  const names = image !== undefined ? [image] : imageFields(index.fields.keys());
  const candidates = names.map((name) => index.fields.get(name)).filter((found) => found !== undefined);
  if (candidates.length === 1) return candidates[0]!;
  const column: FieldColumns = {
    offset: new Float64Array(index.samples).fill(-1),
    bytes: new Float64Array(index.samples),
    ...(candidates.every(({ crc32 }) => crc32 !== undefined) && { crc32: new Uint32Array(index.samples) }),
  };
  for (const candidate of candidates.reverse()) {
    for (let row = 0; row < index.samples; row++) {
      if (candidate.offset[row]! < 0) continue;
      column.offset[row] = candidate.offset[row]!;
      column.bytes[row] = candidate.bytes[row]!;
      if (column.crc32 !== undefined) column.crc32[row] = candidate.crc32![row]!;
    }
  }
  return column;
}
