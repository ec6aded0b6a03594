import { SampleDecodeError } from '@shardtool/base';
import { afterSpace, digitOf, isSpace, type PnmLayout, pnmLayout } from '@shardtool/format';
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
    const { width, channels, largest, isText, dataAt } = layout;
    const values = valuesOf(bytes, layout);
    const scale = scaleOf(largest, WHITE);
    const pixels = new Uint8Array(crop.width * crop.height * 3);
    if (channels === 3 && largest === WHITE && !isText) {
      const row = 3 * crop.width;
      for (let y = 0; y < crop.height; y++) {
        const from = dataAt + 3 * ((crop.y + y) * width + crop.x);
        pixels.set(bytes.subarray(from, from + row), y * row);
      }
      return pixels;
    }
    for (let y = 0, to = 0; y < crop.height; y++) {
      let from = ((crop.y + y) * width + crop.x) * channels;
      for (let x = 0; x < crop.width; x++, from += channels, to += 3) {
        const green = channels === 3 ? 1 : 0;
        pixels[to] = scale(values(from));
        pixels[to + 1] = scale(values(from + green));
        pixels[to + 2] = scale(values(from + 2 * green));
      }
    }
    return pixels;
  },

  alpha: () => null,

  check(bytes) {
    valuesOf(bytes, layoutOf(bytes));
  },
};

/** The values of an image of more than 8 bits, scaled to 16 bits. */
export function readPnmValues(bytes: Uint8Array): StoredValues {
  const layout = layoutOf(bytes);
  const { width, height, channels, largest } = layout;
  const valueAt = valuesOf(bytes, layout);
  const scale = scaleOf(largest, WHITE_16);
  const values = new Uint16Array(width * height * channels);
  for (let i = 0; i < values.length; i++) values[i] = scale(valueAt(i));
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
  return (value) => {
    const scaled = Math.min(white, (value / largest) * white);
    const below = Math.floor(scaled);
    const rest = scaled - below;
    return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
  };
}

/** The values by their index. Throws {@link SampleDecodeError} if the data end before the last one. */
function valuesOf(bytes: Uint8Array, layout: PnmLayout): (index: number) => number {
  const { width, height, channels, largest, isBitmap, isText, dataAt } = layout;
  const count = width * height * channels;
  const size = largest > 255 ? 2 : 1;
  const row = Math.ceil(width / 8);
  // Numbers in text have at least one digit, and white space between them; those of a bitmap need no white space.
  const needed = isText ? (isBitmap ? count : 2 * count - 1) : isBitmap ? row * height : count * size;
  if (bytes.length - dataAt < needed) throw truncated();
  if (isText) {
    const values = isBitmap ? textBits(bytes, dataAt, count) : textValues(bytes, dataAt, count, largest);
    return (index) => values[index]!;
  }
  if (isBitmap) {
    return (index) => {
      const x = index % width;
      return ~(bytes[dataAt + ((index - x) / width) * row + (x >> 3)]! >> (7 - (x & 7))) & 1;
    };
  }
  if (size === 1) return (index) => bytes[dataAt + index]!;
  return (index) => (bytes[dataAt + 2 * index]! << 8) | bytes[dataAt + 2 * index + 1]!;
}

function textBits(bytes: Uint8Array, dataAt: number, count: number): Uint8Array {
  const values = new Uint8Array(count);
  let at = dataAt;
  for (let i = 0; i < count; i++) {
    at = afterSpace(bytes, at);
    if (at >= bytes.length) throw truncated();
    const bit = digitOf(bytes[at++]);
    if (bit !== 0 && bit !== 1) throw invalid();
    values[i] = 1 - bit;
  }
  return values;
}

function textValues(bytes: Uint8Array, dataAt: number, count: number, largest: number): Uint16Array {
  const values = new Uint16Array(count);
  let at = dataAt;
  for (let i = 0; i < count; i++) {
    at = afterSpace(bytes, at);
    if (at >= bytes.length) throw truncated();
    const begin = at;
    let value = 0;
    for (; digitOf(bytes[at]) >= 0 && at - begin < MOST_DIGITS; at++) value = 10 * value + digitOf(bytes[at]);
    const isEnded = at === bytes.length || isSpace(bytes[at]) || bytes[at] === HASH;
    if (at === begin || value > largest || !isEnded) throw invalid();
    values[i] = value;
  }
  return values;
}

function truncated(): SampleDecodeError {
  return new SampleDecodeError({}, 'its data end before its last pixel; it is truncated or damaged');
}

function invalid(): SampleDecodeError {
  return new SampleDecodeError({}, 'it contains invalid values; it is damaged');
}
