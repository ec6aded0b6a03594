/**
 * Reads the stored values of a TIFF with any number of channels: integers of 8 or 16 bits and floats of 16, 32 or 64 bits, in strips or
 * tiles, uncompressed or compressed with LZW, Deflate or PackBits. libvips would convert them to colours of 8 bits. TIFF 6.0, sections 2,
 * 8, 9 (PackBits), 13 (LZW), 14 (predictor) and 15 (tiles); Adobe Photoshop TIFF technical notes 2 (Deflate) and 3 (floating-point predictor).
 */
import { inflateSync } from 'node:zlib';
import { SampleDecodeError } from '@shardtool/base';
import { halfFloatValue } from '../../kernels/half-float.js';

/** The values of an image, [height, width, channels]. */
export interface StoredValues {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly dtype: 'uint8' | 'uint16' | 'int16' | 'float32';
  readonly values: Uint8Array | Uint16Array | Int16Array | Float32Array;
  /** Channels are gray or RGB, then possibly alpha. False: they are bands without a colour. */
  readonly isColour: boolean;
}

/** The facts that are needed to read the values of a TIFF. */
export interface TiffLayout {
  readonly littleEndian: boolean;
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly bits: number;
  readonly kind: 'uint' | 'int' | 'float';
  readonly compression: number;
  readonly predictor: number;
  readonly isColour: boolean;
  /** Each channel is stored separately. */
  readonly isPlanar: boolean;
  /** Size of a strip or tile, in pixels, and their positions. */
  readonly chunk: { readonly width: number; readonly height: number };
  readonly offsets: readonly number[];
  readonly lengths: readonly number[];
}

const TAG = {
  width: 256,
  height: 257,
  bits: 258,
  compression: 259,
  photometric: 262,
  fillOrder: 266,
  stripOffsets: 273,
  samples: 277,
  rowsPerStrip: 278,
  stripLengths: 279,
  planar: 284,
  predictor: 317,
  tileWidth: 322,
  tileHeight: 323,
  tileOffsets: 324,
  tileLengths: 325,
  extraSamples: 338,
  format: 339,
} as const;

const NONE = 1;
const LZW = 5;
const DEFLATES: ReadonlySet<number> = new Set([8, 32_946]);
const PACK_BITS = 32_773;
const RGB = 2;
const BLACK_IS_ZERO = 1;

/** Size in bytes of a value of the types BYTE, SHORT and LONG. */
const TYPE_BYTES: Readonly<Record<number, number>> = { 1: 1, 3: 2, 4: 4 };

/** The layout of the first image. Null if {@link readTiffValues} cannot read it: other colours, compressions or depths. */
export function tiffLayout(bytes: Uint8Array): TiffLayout | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const littleEndian = bytes[0] === 0x49;
  const tags = readTags(view, littleEndian);
  const one = (tag: number, otherwise: number) => tags.get(tag)?.[0] ?? otherwise;
  const width = one(TAG.width, 0);
  const height = one(TAG.height, 0);
  const channels = one(TAG.samples, 1);
  const depths = tags.get(TAG.bits) ?? [1];
  const formats = tags.get(TAG.format) ?? [1];
  const bits = depths[0]!;
  const kind = ({ 1: 'uint', 2: 'int', 3: 'float', 4: 'uint' } as const)[formats[0]!];
  const photometric = one(TAG.photometric, -1);
  const compression = one(TAG.compression, NONE);
  const isKnown =
    kind !== undefined &&
    (kind === 'float' ? [16, 32, 64] : kind === 'int' ? [16] : [8, 16]).includes(bits) &&
    depths.every((depth) => depth === bits) &&
    formats.every((format) => format === formats[0]) &&
    (photometric === BLACK_IS_ZERO || photometric === RGB || photometric === 0) &&
    (compression === NONE || compression === LZW || compression === PACK_BITS || DEFLATES.has(compression)) &&
    one(TAG.fillOrder, 1) === 1;
  if (!isKnown || width === 0 || height === 0) return null;
  const isTiled = tags.has(TAG.tileWidth);
  const colours = photometric === RGB ? 3 : 1;
  return {
    littleEndian,
    width,
    height,
    channels,
    bits,
    kind,
    compression,
    predictor: one(TAG.predictor, 1),
    isColour: channels === colours || (channels === colours + 1 && tags.has(TAG.extraSamples)),
    isPlanar: one(TAG.planar, 1) === 2 && channels > 1,
    chunk: isTiled
      ? { width: one(TAG.tileWidth, width), height: one(TAG.tileHeight, height) }
      : { width, height: Math.min(height, one(TAG.rowsPerStrip, height)) },
    offsets: tags.get(isTiled ? TAG.tileOffsets : TAG.stripOffsets) ?? [],
    lengths: tags.get(isTiled ? TAG.tileLengths : TAG.stripLengths) ?? [],
  };
}

function readTags(view: DataView, littleEndian: boolean): Map<number, readonly number[]> {
  const tags = new Map<number, readonly number[]>();
  const at = view.getUint32(4, littleEndian);
  if (at + 2 > view.byteLength) return tags;
  const count = view.getUint16(at, littleEndian);
  for (let entry = at + 2; entry < at + 2 + count * 12 && entry + 12 <= view.byteLength; entry += 12) {
    const size = TYPE_BYTES[view.getUint16(entry + 2, littleEndian)];
    if (size === undefined) continue;
    const length = view.getUint32(entry + 4, littleEndian);
    const from = size * length <= 4 ? entry + 8 : view.getUint32(entry + 8, littleEndian);
    if (from + size * length > view.byteLength) continue;
    const read = (i: number) =>
      size === 1
        ? view.getUint8(from + i)
        : size === 2
          ? view.getUint16(from + 2 * i, littleEndian)
          : view.getUint32(from + 4 * i, littleEndian);
    tags.set(
      view.getUint16(entry, littleEndian),
      Array.from({ length }, (_, i) => read(i)),
    );
  }
  return tags;
}

/** Reads all values. Throws {@link SampleDecodeError} if they are damaged or missing. */
export function readTiffValues(bytes: Uint8Array, layout: TiffLayout): StoredValues {
  const { width, height, channels, bits, kind, isPlanar, chunk, isColour } = layout;
  const planes = isPlanar ? channels : 1;
  const each = isPlanar ? 1 : channels;
  const size = bits / 8;
  const across = Math.ceil(width / chunk.width);
  const down = Math.ceil(height / chunk.height);
  if (chunk.width < 1 || chunk.height < 1 || layout.offsets.length < planes * across * down) throw cut();
  const dtype = kind === 'float' ? 'float32' : kind === 'int' ? 'int16' : bits === 8 ? 'uint8' : 'uint16';
  const values = new { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, float32: Float32Array }[dtype](
    width * height * channels,
  );
  for (let plane = 0; plane < planes; plane++) {
    for (let i = 0; i < across * down; i++) {
      const [left, top] = [(i % across) * chunk.width, Math.floor(i / across) * chunk.height];
      // The last strip may be shorter; tiles are whole.
      const rows = chunk.width === width && across === 1 ? Math.min(chunk.height, height - top) : chunk.height;
      const rowValues = chunk.width * each;
      const index = plane * across * down + i;
      const data = unpacked(bytes, layout, index, rows * rowValues * size, layout.offsets[index]!);
      const read = valuesOf(data, layout, rows, rowValues, each);
      const columns = Math.min(chunk.width, width - left);
      for (let y = 0; y < Math.min(rows, height - top); y++) {
        let from = y * rowValues;
        let to = ((top + y) * width + left) * channels + plane;
        if (each === channels) {
          for (let j = 0; j < columns * each; j++) values[to + j] = read[from + j]!;
          continue;
        }
        for (let x = 0; x < columns; x++, from++, to += channels) values[to] = read[from]!;
      }
    }
  }
  return { width, height, channels, dtype, values, isColour };
}

/** The bytes of a strip or tile, without compression. A copy, which may be changed. */
function unpacked(bytes: Uint8Array, { compression, lengths }: TiffLayout, index: number, size: number, at: number) {
  const length = lengths[index] ?? size;
  if (at + length > bytes.length) throw cut();
  const data = bytes.subarray(at, at + length);
  let result: Uint8Array;
  if (compression === NONE) result = new Uint8Array(data.subarray(0, size));
  else if (compression === LZW) result = unpackLzw(data, size);
  else if (compression === PACK_BITS) result = unpackBits(data, size);
  else {
    try {
      result = inflateSync(data, { maxOutputLength: Math.max(1, size) });
    } catch (cause) {
      throw new SampleDecodeError({}, `it cannot be decoded (${(cause as Error).message})`, { cause });
    }
  }
  if (result.length < size) throw cut();
  return result;
}

/** Undoes the predictor, and converts to numbers. */
function valuesOf(
  data: Uint8Array,
  { bits, kind, littleEndian, predictor }: TiffLayout,
  rows: number,
  rowValues: number,
  step: number,
): ArrayLike<number> {
  const size = bits / 8;
  const rowBytes = rowValues * size;
  let little = littleEndian;
  if (predictor === 3) {
    // Bytes of a row are sorted by significance, the highest first, and each is the difference to the byte one pixel before.
    const sorted = new Uint8Array(rowBytes);
    for (let y = 0; y < rows; y++) {
      const row = data.subarray(y * rowBytes, (y + 1) * rowBytes);
      for (let i = step; i < rowBytes; i++) row[i] = row[i]! + row[i - step]!;
      sorted.set(row);
      for (let i = 0; i < rowValues; i++)
        for (let byte = 0; byte < size; byte++) row[i * size + byte] = sorted[byte * rowValues + i]!;
    }
    little = false;
  }
  const count = rows * rowValues;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const add = (values: Uint8Array | Uint16Array | Int16Array | Uint32Array): void => {
    for (let y = 0; y < rows; y++) {
      const end = (y + 1) * rowValues;
      for (let i = y * rowValues + step; i < end; i++) values[i] = values[i]! + values[i - step]!;
    }
  };
  if (bits === 8) {
    const values = data.subarray(0, count);
    if (predictor === 2) add(values);
    return values;
  }
  if (bits === 16) {
    const words = new (kind === 'int' ? Int16Array : Uint16Array)(count);
    for (let i = 0; i < count; i++)
      words[i] = kind === 'int' ? view.getInt16(2 * i, little) : view.getUint16(2 * i, little);
    if (predictor === 2) add(words);
    return kind === 'float' ? Float32Array.from(words, halfFloatValue) : words;
  }
  if (bits === 32) {
    const words = new Uint32Array(count);
    for (let i = 0; i < count; i++) words[i] = view.getUint32(4 * i, little);
    if (predictor === 2) add(words);
    return new Float32Array(words.buffer);
  }
  if (predictor === 2)
    throw new SampleDecodeError({}, 'it has 64-bit values with a predictor, which are not supported');
  return Float64Array.from({ length: count }, (_, i) => view.getFloat64(8 * i, little));
}

const CLEAR = 256;
const END = 257;
const MAX_CODES = 4096;

/** LZW with codes of 9 to 12 bits, the highest bit first. Codes grow one code early. */
function unpackLzw(data: Uint8Array, size: number): Uint8Array {
  const result = new Uint8Array(size);
  const prefix = new Uint16Array(MAX_CODES);
  const last = new Uint8Array(MAX_CODES);
  const lengths = new Uint16Array(MAX_CODES);
  for (let i = 0; i < 256; i++) {
    last[i] = i;
    lengths[i] = 1;
  }
  let [bit, width, next, before, to] = [0, 9, END + 1, -1, 0];
  const bits = data.length * 8;
  while (to < size && bit + width <= bits) {
    const at = bit >> 3;
    const word = ((data[at]! << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0)) >>> 0;
    const code = (word >> (24 - width - (bit & 7))) & ((1 << width) - 1);
    bit += width;
    if (code === END) break;
    if (code === CLEAR) {
      [width, next, before] = [9, END + 1, -1];
      continue;
    }
    if (before >= 0 && next < MAX_CODES) {
      if (code > next) throw damaged();
      prefix[next] = before;
      lengths[next] = lengths[before]! + 1;
      let first = code === next ? before : code;
      while (first >= CLEAR) first = prefix[first]!;
      last[next] = first;
      next++;
    } else if (code >= next || (code >= CLEAR && before < 0)) throw damaged();
    const end = Math.min(size, to + lengths[code]!);
    let write = to + lengths[code]!;
    for (let one = code; ; one = prefix[one]!) {
      write--;
      if (write < end) result[write] = last[one]!;
      if (one < CLEAR) break;
    }
    to = end;
    before = code;
    if (next >= (1 << width) - 1 && width < 12) width++;
  }
  if (to < size) throw cut();
  return result;
}

function unpackBits(data: Uint8Array, size: number): Uint8Array {
  const result = new Uint8Array(size);
  let to = 0;
  for (let at = 0; at < data.length && to < size; ) {
    const head = (data[at++]! << 24) >> 24;
    if (head >= 0) {
      const part = data.subarray(at, Math.min(at + head + 1, at + size - to));
      result.set(part, to);
      to += part.length;
      at += head + 1;
    } else if (head !== -128) {
      result.fill(data[at++] ?? 0, to, to + 1 - head);
      to += 1 - head;
    }
  }
  if (to < size) throw cut();
  return result;
}

function cut(): SampleDecodeError {
  return new SampleDecodeError({}, 'its data end before its last pixel; it is truncated or damaged');
}

function damaged(): SampleDecodeError {
  return new SampleDecodeError({}, 'its LZW data are damaged');
}
