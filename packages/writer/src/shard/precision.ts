import { headerOf, type ImageHeader, kindOfField } from '@shardtool/format';
import type { NewField, PayloadOf } from './put-sample.js';

/** Images of a sample whose values are not those of 8 bits a channel. */
export interface PrecisionCounts {
  /** Of more than 8 bits: decoders give the upper 8. */
  readonly narrowed: number;
  /** Floating-point, signed, or of more than 16 bits: decoders refuse them. */
  readonly refused: number;
}

/** Of an image with this header, and of further images among the fields, such as `depth.png`. */
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
