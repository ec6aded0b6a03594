import { headerOf, type ImageHeader, kindOfField } from '@shardtool/format';
import type { NewField, PayloadOf } from './put-sample.js';

/** Number of images of a sample whose values are not 8 bits per channel. */
export interface PrecisionCounts {
  /** More than 8 bits: decoders return the upper 8. */
  readonly narrowed: number;
  /** Floating-point, signed, or more than 16 bits: decoders reject them. */
  readonly refused: number;
}

/** Counts an image with this header, and further images among the fields, such as `depth.png`. */
export function precisionCounts(
  image: { readonly name: string; readonly header: Pick<ImageHeader, 'precision'> },
  fields: readonly NewField[],
  payloadOf: PayloadOf,
): PrecisionCounts {
  let narrowed = 0;
  let refused = 0;
  const count = (precision: ImageHeader['precision']) => {
    if (precision === 'narrowed') narrowed++;
    else if (precision === 'refused') refused++;
  };
  count(image.header.precision);
  for (const { name } of fields) {
    if (name === image.name || kindOfField(name.slice(name.lastIndexOf('.') + 1)) === undefined) continue;
    const payload = payloadOf(name);
    if (payload !== undefined) count(headerOf(payload)?.precision);
  }
  return { narrowed, refused };
}
