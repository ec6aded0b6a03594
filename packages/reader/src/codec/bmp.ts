import { SampleDecodeError } from '@shardtool/base';
import { type BmpLayout, bmpLayout } from '@shardtool/format';
import type { Rect } from './codec.js';
import type { OwnDecoder } from './own-codec.js';

/** The codes that follow a zero in run-length data. Microsoft, "Bitmap Compression". */
const END_OF_LINE = 0;
const END_OF_BITMAP = 1;
const DELTA = 2;

/** Decodes a BMP to the pixels of Pillow's `convert('RGB')`. With 32 bits per pixel and no alpha mask, the last 8 bits are ignored. */
export const bmpDecoder: OwnDecoder = {
  pixels(bytes, crop) {
    const layout = layoutOf(bytes);
    return layout.masks === null
      ? coloured(indicesOf(bytes, layout, crop), coloursOf(layout))
      : channelsOf(bytes, layout, crop, layout.masks.slice(0, 3));
  },

  alpha(bytes, crop) {
    const layout = layoutOf(bytes);
    const alpha = layout.masks?.[3] ?? 0;
    return alpha === 0 ? null : channelsOf(bytes, layout, crop, [alpha]);
  },

  check(bytes) {
    const layout = layoutOf(bytes);
    if (layout.isRunLength) runLengthIndices(bytes, layout);
    else checkLength(bytes, layout);
  },
};

function layoutOf(bytes: Uint8Array): BmpLayout {
  const layout = bmpLayout(bytes);
  if (layout === null) throw new SampleDecodeError({}, 'its header is truncated; restore it from its source');
  return layout;
}

/** Bytes of a stored row, which is padded to a multiple of 4. */
function strideOf({ width, bits }: BmpLayout): number {
  return Math.ceil((width * bits) / 32) * 4;
}

/** The last row may lack its padding. */
function checkLength(bytes: Uint8Array, layout: BmpLayout): void {
  const { width, height, bits, dataAt } = layout;
  const end = dataAt + (height - 1) * strideOf(layout) + Math.ceil((width * bits) / 8);
  if (bytes.length < end) throw truncated(end - bytes.length);
}

function storedRow({ isTopDown, height }: BmpLayout, y: number): number {
  return isTopDown ? y : height - 1 - y;
}

/** The values of some channels of a part of the image, scaled to 8 bits. */
function channelsOf(bytes: Uint8Array, layout: BmpLayout, crop: Rect, masks: readonly number[]): Uint8Array {
  checkLength(bytes, layout);
  const channels = masks.map(channelOf);
  const size = layout.bits / 8;
  const stride = strideOf(layout);
  const values = new Uint8Array(crop.width * crop.height * channels.length);
  const isBytes = channels.every(({ shift, most }) => most === 255 && shift % 8 === 0 && shift < layout.bits);
  for (let y = 0, to = 0; y < crop.height; y++, to += crop.width * channels.length) {
    const from = layout.dataAt + storedRow(layout, crop.y + y) * stride + crop.x * size;
    const row = bytes.subarray(from, from + crop.width * size);
    const target = values.subarray(to, to + crop.width * channels.length);
    if (isBytes) copyBytes(row, size, target, channels);
    else scaleMasked(row, size, target, channels);
  }
  return values;
}

/** Copies a row with one byte per channel, as in nearly all files. */
function copyBytes(row: Uint8Array, size: number, target: Uint8Array, channels: readonly Channel[]): void {
  const step = channels.length;
  for (let channel = 0; channel < step; channel++)
    for (let from = channels[channel]!.shift >> 3, to = channel; from < row.length; from += size, to += step)
      target[to] = row[from]!;
}

function scaleMasked(row: Uint8Array, size: number, target: Uint8Array, channels: readonly Channel[]): void {
  for (let from = 0, to = 0; from < row.length; from += size) {
    let value = row[from]! | (row[from + 1]! << 8);
    if (size > 2) value |= row[from + 2]! << 16;
    if (size > 3) value |= row[from + 3]! << 24;
    for (const { mask, shift, most } of channels) {
      const stored = (value & mask) >>> shift;
      target[to++] = most === 0 ? 0 : Math.floor((stored * 255) / most);
    }
  }
}

interface Channel {
  readonly mask: number;
  readonly shift: number;
  readonly most: number;
}

/** How a channel is extracted from a value. With a mask of 0 it is always 0. */
function channelOf(mask: number): Channel {
  const shift = mask === 0 ? 0 : 31 - Math.clz32(mask & -mask);
  return { mask, shift, most: mask >>> shift };
}

/** The palette indices of a part of the image. */
function indicesOf(bytes: Uint8Array, layout: BmpLayout, crop: Rect): Uint8Array {
  const { width, bits, isRunLength, dataAt } = layout;
  const all = isRunLength ? runLengthIndices(bytes, layout) : null;
  if (all === null) checkLength(bytes, layout);
  const stride = strideOf(layout);
  const most = 2 ** bits - 1;
  const indices = new Uint8Array(crop.width * crop.height);
  for (let y = 0, to = 0; y < crop.height; y++) {
    const row = storedRow(layout, crop.y + y);
    if (all !== null) {
      const from = row * width + crop.x;
      indices.set(all.subarray(from, from + crop.width), y * crop.width);
      continue;
    }
    for (let x = crop.x; x < crop.x + crop.width; x++, to++) {
      const bit = x * bits;
      indices[to] = (bytes[dataAt + row * stride + (bit >> 3)]! >> (8 - bits - (bit & 7))) & most;
    }
  }
  return indices;
}

/** The palette indices of the whole image, row by row as stored. Pixels that the data skip have the index 0. */
function runLengthIndices(bytes: Uint8Array, { width, height, bits, dataAt }: BmpLayout): Uint8Array {
  const indices = new Uint8Array(width * height);
  let at = dataAt;
  let x = 0;
  let y = 0;
  const put = (index: number) => {
    if (x < width) indices[y * width + x] = index;
    x++;
  };
  while (y < height && !(y === height - 1 && x >= width)) {
    if (at + 2 > bytes.length) throw truncated(at + 2 - bytes.length);
    const count = bytes[at]!;
    const code = bytes[at + 1]!;
    at += 2;
    if (count > 0) {
      for (let i = 0; i < count; i++) put(bits === 8 ? code : i % 2 === 0 ? code >> 4 : code & 15);
    } else if (code === END_OF_LINE) {
      x = 0;
      y++;
    } else if (code === END_OF_BITMAP) {
      break;
    } else if (code === DELTA) {
      if (at + 2 > bytes.length) throw truncated(at + 2 - bytes.length);
      x += bytes[at]!;
      y += bytes[at + 1]!;
      at += 2;
    } else {
      const stored = Math.ceil((code * bits) / 8);
      if (at + stored > bytes.length) throw truncated(at + stored - bytes.length);
      for (let i = 0; i < code; i++) {
        put(bits === 8 ? bytes[at + i]! : i % 2 === 0 ? bytes[at + (i >> 1)]! >> 4 : bytes[at + (i >> 1)]! & 15);
      }
      // Padded to a multiple of 2.
      at += stored + (stored % 2);
    }
  }
  return indices;
}

/** The colours as red, green, blue. Indices without a colour are black. */
function coloursOf({ colours, colourBytes }: BmpLayout): Uint8Array {
  const rgb = new Uint8Array(3 * 256);
  for (let from = 0, to = 0; from + 2 < colours.length; from += colourBytes, to += 3) {
    rgb[to] = colours[from + 2]!;
    rgb[to + 1] = colours[from + 1]!;
    rgb[to + 2] = colours[from]!;
  }
  return rgb;
}

function coloured(indices: Uint8Array, colours: Uint8Array): Uint8Array {
  const pixels = new Uint8Array(3 * indices.length);
  for (let i = 0, to = 0; i < indices.length; i++, to += 3) {
    const from = 3 * indices[i]!;
    pixels[to] = colours[from]!;
    pixels[to + 1] = colours[from + 1]!;
    pixels[to + 2] = colours[from + 2]!;
  }
  return pixels;
}

function truncated(missing: number): SampleDecodeError {
  return new SampleDecodeError({}, `it ends ${missing} bytes before its last pixel; it is truncated or damaged`);
}
