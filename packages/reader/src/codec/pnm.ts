import { SampleDecodeError } from '@shardtool/base';
import { afterSpace, digitOf, isSpace, type PnmLayout, pnmLayout } from '@shardtool/format';
import type { Rect } from './codec.js';
import type { OwnDecoder } from './own-codec.js';
import type { StoredValues } from './wide/tiff-values.js';

const WHITE = 255;
/** White in 16 bits. Images whose largest value exceeds 255 are scaled to it. */
const WHITE_16 = 65_535;
/** Begins a comment. */
const HASH = 0x23;
/** A value of more digits is an error, as in Pillow. */
const MOST_DIGITS = 10;

/**
 * Decodes the first picture of a PBM, PGM or PPM to 8 bits. Values are scaled, so that the largest one is white, and rounded like
 * Pillow's. Pillow does not scale gray values of 16 bits when it converts them to RGB, but clips them; here they are scaled too.
 */
export const pnmDecoder: OwnDecoder = {
  pixels(bytes, crop) {
    const layout = layoutOf(bytes);
    const values = valuesOf(bytes, layout, crop);
    if (layout.channels === 3 && layout.largest === WHITE && values instanceof Uint8Array) return values;
    const scale = scaleOf(layout.largest, WHITE);
    const pixels = new Uint8Array(crop.width * crop.height * 3);
    if (layout.channels === 3) {
      for (let i = 0; i < pixels.length; i++) pixels[i] = scale(values[i]!);
      return pixels;
    }
    for (let i = 0, to = 0; i < values.length; i++, to += 3) {
      const gray = scale(values[i]!);
      pixels[to] = gray;
      pixels[to + 1] = gray;
      pixels[to + 2] = gray;
    }
    return pixels;
  },

  alpha: () => null,

  check(bytes) {
    const layout = layoutOf(bytes);
    checkLength(bytes, layout);
    if (layout.isText) textValues(bytes, layout);
  },
};

/** The values of an image of more than 8 bits, scaled to 16 bits. */
export function readPnmValues(bytes: Uint8Array): StoredValues {
  const layout = layoutOf(bytes);
  const { width, height, channels, largest } = layout;
  const scale = scaleOf(largest, WHITE_16);
  const values = Uint16Array.from(valuesOf(bytes, layout, { x: 0, y: 0, width, height }), scale);
  return { width, height, channels, dtype: 'uint16', values, isColour: true };
}

function layoutOf(bytes: Uint8Array): PnmLayout {
  const layout = pnmLayout(bytes);
  if (typeof layout !== 'string') return layout;
  throw new SampleDecodeError({}, 'its header is damaged; restore it from its source');
}

/** Maps values to 0..white. A value that is halfway between two is rounded to the even one, as in Python. */
function scaleOf(largest: number, white: number): (value: number) => number {
  if (largest === white) return (value) => value;
  const scale = (value: number) => {
    const scaled = Math.min(white, (value / largest) * white);
    const below = Math.floor(scaled);
    const rest = scaled - below;
    return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
  };
  if (largest > WHITE) return scale;
  const table = Uint16Array.from({ length: WHITE + 1 }, (_, value) => scale(value));
  return (value) => table[value]!;
}

/** Throws {@link SampleDecodeError} if the data certainly end before the last value, before memory is allocated for the values. */
function checkLength(
  bytes: Uint8Array,
  { width, height, channels, largest, isBitmap, isText, dataAt }: PnmLayout,
): void {
  const count = width * height * channels;
  // Numbers in text have at least one digit, and white space between them; those of a bitmap need no white space.
  const ofText = isBitmap ? count : 2 * count - 1;
  const ofBytes = isBitmap ? Math.ceil(width / 8) * height : count * (largest > 255 ? 2 : 1);
  if (bytes.length - dataAt < (isText ? ofText : ofBytes)) throw truncated();
}

/** The values of a part of the image, in a new array. Throws {@link SampleDecodeError} if the data end before the last one. */
function valuesOf(bytes: Uint8Array, layout: PnmLayout, crop: Rect): Uint8Array | Uint16Array {
  const { width, channels, largest, isBitmap, isText, dataAt } = layout;
  checkLength(bytes, layout);
  const row = crop.width * channels;
  const values = new (largest > 255 ? Uint16Array : Uint8Array)(row * crop.height);
  const text = isText ? textValues(bytes, layout) : null;
  for (let y = 0, to = 0; y < crop.height; y++, to += row) {
    const first = ((crop.y + y) * width + crop.x) * channels;
    if (text !== null) {
      values.set(text.subarray(first, first + row), to);
    } else if (isBitmap) {
      const from = dataAt + (crop.y + y) * Math.ceil(width / 8);
      for (let x = crop.x, i = to; i < to + row; x++, i++) values[i] = ~(bytes[from + (x >> 3)]! >> (7 - (x & 7))) & 1;
    } else if (largest > 255) {
      for (let i = to, at = dataAt + 2 * first; i < to + row; i++, at += 2)
        values[i] = (bytes[at]! << 8) | bytes[at + 1]!;
    } else {
      values.set(bytes.subarray(dataAt + first, dataAt + first + row), to);
    }
  }
  return values;
}

/** All values of an image that are stored as text. */
function textValues(bytes: Uint8Array, { width, height, channels, largest, isBitmap, dataAt }: PnmLayout): Uint16Array {
  const values = new Uint16Array(width * height * channels);
  for (let i = 0, at = dataAt; i < values.length; i++) {
    at = afterSpace(bytes, at);
    if (at >= bytes.length) throw truncated();
    const begin = at;
    let value = 0;
    // The digits of a bitmap need no white space between them.
    const most = isBitmap ? 1 : MOST_DIGITS;
    for (; digitOf(bytes[at]) >= 0 && at - begin < most; at++) value = 10 * value + digitOf(bytes[at]);
    const isEnded = isBitmap || at === bytes.length || isSpace(bytes[at]) || bytes[at] === HASH;
    if (at === begin || value > largest || !isEnded) throw invalid();
    values[i] = isBitmap ? 1 - value : value;
  }
  return values;
}

function truncated(): SampleDecodeError {
  return new SampleDecodeError({}, 'its data end before its last pixel; it is truncated or damaged');
}

function invalid(): SampleDecodeError {
  return new SampleDecodeError({}, 'it contains invalid values; it is damaged');
}
