import { imageFields, imageKindOf, mediaTypeOf } from '@shardtool/format';
import type { Sample } from './samples.js';

/** The stored image of a sample. */
export interface StoredSampleImage {
  /** Name of its field, such as `jpg`. */
  readonly field: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Media type by its first bytes, such as `image/jpeg`. For an array, `application/octet-stream`. */
  readonly type: string;
}

/** Returns the stored image of a sample: the field that a loader decodes by default. Null if it has no image. */
export function imageOf({ fields }: Pick<Sample, 'fields'>): StoredSampleImage | null {
  const [field] = imageFields(Object.keys(fields));
  if (field === undefined) return null;
  const bytes = fields[field]!;
  const kind = imageKindOf(bytes);
  return { field, bytes, type: kind === undefined ? 'application/octet-stream' : mediaTypeOf(kind) };
}
