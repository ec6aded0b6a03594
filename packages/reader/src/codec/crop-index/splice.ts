import {
  CROP_ENTRY_BYTES,
  CROP_INDEX_SLACK_BYTES,
  CROP_SOURCE_SLACK_BYTES,
  CropIndexKernel,
} from '../../kernels/crop-index.js';
import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { Rect, Reduction } from '../codec.js';
import type { Scratch } from '../scratch.js';
import { partOf, rangeOf } from './range.js';

/**
 * Bytes to append after the end marker. libjpeg-turbo takes its slow path if fewer than 512 bytes remain for each block of an MCU.
 * The appended bytes are never decoded, but keep it on its fast path.
 */
const TAIL_BYTES = 8192;
/** Bytes by which a small JPEG may exceed the image: the first DC values of each row are encoded again. */
const ROOM_BYTES = 65_536;

/** At least the sum of all slack that follows the buffers here. */
const SPARE_BYTES = TAIL_BYTES + CROP_SOURCE_SLACK_BYTES + CROP_INDEX_SLACK_BYTES + 256;

/** A JPEG of a part of an image, in scratch memory. */
export interface SmallJpeg {
  /** The JPEG, followed by unused bytes after its end marker. */
  readonly bytes: Uint8Array;
  /** The part, in pixels of the image at full size. */
  readonly part: Rect;
}

/** Makes small JPEGs of crops with the help of crop indexes. Belongs to one worker. */
export class JpegSplicer {
  readonly #kernel: CropIndexKernel;

  /** `state` is the address of CROP_STATE_BYTES zero bytes. */
  constructor(memory: KernelMemory, state: number) {
    this.#kernel = new CropIndexKernel(memory, state);
  }

  /**
   * Makes a JPEG of the part that is needed for `crop`, which refers to the image at 1 / `reduction` of its size. Decoding it gives
   * the same pixels as decoding the image. Null if the index does not belong to this image or scratch memory is too small.
   */
  splice(image: Uint8Array, index: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): SmallJpeg | null {
    if (index.length === 0 || image.length + SPARE_BYTES > scratch.available) return null;
    const source = copyToScratch(scratch, image, CROP_SOURCE_SLACK_BYTES);
    if (this.#kernel.parse(source, image.length) < 0) return null;
    const { grid } = this.#kernel;
    const group = index[0]!;
    if (group === 0) return null;
    const range = rangeOf(grid, group, crop, reduction);
    const count = (range.bottom - 1) * Math.ceil(grid.mcusX / group) + range.right + 1;
    const room = image.length + ROOM_BYTES;
    if (index.length + count * CROP_ENTRY_BYTES + room + SPARE_BYTES > scratch.available) return null;
    const packed = copyToScratch(scratch, index, CROP_INDEX_SLACK_BYTES);
    const entries = scratch.allocate(count * CROP_ENTRY_BYTES);
    if (this.#kernel.unpack(packed, index.length, count, entries) < 0) return null;
    const target = scratch.allocate(room + TAIL_BYTES);
    const bytes = this.#kernel.splice(entries, range, target, room);
    if (bytes < 0) return null;
    return { bytes: scratch.memory.subarray(target, target + bytes + TAIL_BYTES), part: partOf(grid, group, range) };
  }
}

/** Copies bytes to scratch memory, with `slack` free bytes after them, and returns their address. */
function copyToScratch(scratch: Scratch, bytes: Uint8Array, slack: number): number {
  const address = scratch.allocate(bytes.length + slack);
  scratch.memory.set(bytes, address);
  return address;
}
