import { SampleDecodeError } from '@shardtool/base';
import { firstGifFrame, type GifFrame } from '@shardtool/format';
import type { OwnDecoder } from './own-codec.js';

/** LZW codes have at most 12 bits. GIF89a specification, appendix F. */
const MAX_CODES = 4096;
const MAX_CODE_BITS = 12;
/** First row and row step of each pass of an interlaced frame. Appendix E. */
const PASSES = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const;

/**
 * Decodes the first frame of a GIF to the pixels of Pillow's `convert('RGB')`. Transparent pixels, and pixels outside the frame,
 * get the colour that the palette has for the transparent index. libvips would make them black.
 */
export const gifDecoder: OwnDecoder = {
  pixels(bytes, crop) {
    const frame = frameOf(bytes);
    const indices = decodeFrame(bytes, frame);
    const rowAt = storedRows(frame);
    const colours = coloursOf(frame);
    const outside = Math.max(0, frame.transparent);
    const pixels = new Uint8Array(crop.width * crop.height * 3);
    let to = 0;
    for (let y = crop.y - frame.top; y < crop.y - frame.top + crop.height; y++) {
      const row = y >= 0 && y < frame.height ? rowAt[y]! * frame.width : -1;
      for (let x = crop.x - frame.left; x < crop.x - frame.left + crop.width; x++, to += 3) {
        const colour = 3 * (row >= 0 && x >= 0 && x < frame.width ? indices[row + x]! : outside);
        pixels[to] = colours[colour]!;
        pixels[to + 1] = colours[colour + 1]!;
        pixels[to + 2] = colours[colour + 2]!;
      }
    }
    return pixels;
  },

  alpha(bytes, crop) {
    const frame = frameOf(bytes);
    if (frame.transparent < 0) return null;
    const alpha = new Uint8Array(crop.width * crop.height).fill(255);
    const indices = decodeFrame(bytes, frame);
    const rowAt = storedRows(frame);
    for (let y = 0, to = 0; y < crop.height; y++) {
      const row = crop.y + y - frame.top;
      for (let x = 0; x < crop.width; x++, to++) {
        const column = crop.x + x - frame.left;
        const isInside = row >= 0 && row < frame.height && column >= 0 && column < frame.width;
        if (!isInside || indices[rowAt[row]! * frame.width + column] === frame.transparent) alpha[to] = 0;
      }
    }
    return alpha;
  },

  check(bytes) {
    decodeFrame(bytes, frameOf(bytes));
  },
};

function frameOf(bytes: Uint8Array): GifFrame {
  const frame = bytes.length < 13 ? null : firstGifFrame(bytes);
  if (frame === null || frame.width === 0 || frame.height === 0)
    throw new SampleDecodeError({}, 'this GIF does not contain a frame; it is truncated or damaged');
  return frame;
}

/** The palette, three bytes per index. Without a palette, an index is a gray value. Indices beyond the palette are black. */
function coloursOf({ colours }: GifFrame): Uint8Array {
  if (colours === null) return GRAYS;
  const all = new Uint8Array(GRAYS.length);
  all.set(colours);
  return all;
}

const GRAYS = Uint8Array.from({ length: 3 * 256 }, (_, i) => Math.floor(i / 3));

/** For each row, its position among the stored rows. */
function storedRows({ height, isInterlaced }: GifFrame): Uint32Array {
  const rows = new Uint32Array(height);
  if (!isInterlaced) return rows.map((_, y) => y);
  let stored = 0;
  for (const [start, step] of PASSES) for (let y = start; y < height; y += step) rows[y] = stored++;
  return rows;
}

/** The palette indices of a frame, row by row as stored. Appendix F: LZW with codes of growing length. */
function decodeFrame(bytes: Uint8Array, { width, height, dataAt }: GifFrame): Uint8Array {
  const indices = new Uint8Array(width * height);
  const firstBits = bytes[dataAt] ?? MAX_CODE_BITS;
  if (firstBits >= MAX_CODE_BITS) throw damaged();
  const clear = 1 << firstBits;
  const end = clear + 1;
  const codes = new Codes(bytes, dataAt + 1);
  // Each code above `end` stands for the string of another code, followed by one index.
  const prefix = new Uint16Array(MAX_CODES);
  const last = new Uint8Array(MAX_CODES);
  const length = new Uint16Array(MAX_CODES).fill(1);
  let next = end + 1;
  let bits = firstBits + 1;
  let previous = -1;
  let first = 0;
  for (let filled = 0; filled < indices.length; ) {
    const code = codes.next(bits);
    if (code === clear) {
      next = end + 1;
      bits = firstBits + 1;
      previous = -1;
      continue;
    }
    if (code === end) throw truncated();
    if (code > next || (code === next && next === MAX_CODES) || (previous < 0 && code > end)) throw damaged();
    // A code that is not in the table yet stands for the previous string plus its first index.
    const isNew = code === next;
    const count = isNew ? length[previous]! + 1 : length[code]!;
    let to = filled + count - 1;
    let entry = code;
    if (isNew) {
      indices[to--] = first;
      entry = previous;
    }
    while (entry > end) {
      indices[to--] = last[entry]!;
      entry = prefix[entry]!;
    }
    indices[to] = entry;
    first = entry;
    if (previous >= 0 && next < MAX_CODES) {
      prefix[next] = previous;
      last[next] = first;
      length[next] = length[previous]! + 1;
      next++;
      if (next === 1 << bits && bits < MAX_CODE_BITS) bits++;
    }
    filled += count;
    previous = code;
  }
  return indices;
}

/** Reads the codes from the data blocks of a frame, lowest bits first. */
class Codes {
  readonly #bytes: Uint8Array;
  #at: number;
  /** Bytes left in the current block. */
  #left = 0;
  #bits = 0;
  #count = 0;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  next(bits: number): number {
    while (this.#count < bits) {
      if (this.#left === 0) this.#left = this.#bytes[this.#at++] ?? 0;
      if (this.#left === 0 || this.#at >= this.#bytes.length) throw truncated();
      this.#bits |= this.#bytes[this.#at++]! << this.#count;
      this.#count += 8;
      this.#left--;
    }
    const code = this.#bits & ((1 << bits) - 1);
    this.#bits >>>= bits;
    this.#count -= bits;
    return code;
  }
}

function truncated(): SampleDecodeError {
  return new SampleDecodeError({}, 'the data of this GIF end before its last pixel; it is truncated or damaged');
}

function damaged(): SampleDecodeError {
  return new SampleDecodeError({}, 'this GIF contains invalid data; it is damaged');
}
