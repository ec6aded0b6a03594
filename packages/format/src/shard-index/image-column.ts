import { imageFields } from '../image/kinds.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/**
 * The position of each sample's image, whichever field it is in: the field `image`, or the sample's first field of an
 * image kind, by name. Offset -1 for a sample without one.
 */
export function imageColumn(
  { samples, fields }: Pick<ShardIndex, 'samples' | 'fields'>,
  image?: string | undefined,
): FieldColumns {
  const names = image !== undefined ? [image] : imageFields(fields.keys());
  const candidates = names.map((name) => fields.get(name)).filter((found) => found !== undefined);
  if (candidates.length === 1) return candidates[0]!;
  const column: FieldColumns = {
    offset: new Float64Array(samples).fill(-1),
    bytes: new Float64Array(samples),
    ...(candidates.every(({ crc32 }) => crc32 !== undefined) && { crc32: new Uint32Array(samples) }),
  };
  for (const candidate of candidates.reverse()) {
    for (let row = 0; row < samples; row++) {
      if (candidate.offset[row]! < 0) continue;
      column.offset[row] = candidate.offset[row]!;
      column.bytes[row] = candidate.bytes[row]!;
      if (column.crc32 !== undefined) column.crc32[row] = candidate.crc32![row]!;
    }
  }
  return column;
}
