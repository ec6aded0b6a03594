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
 * libjpeg-turbo decodes slowly within the last 512 bytes of each block of an MCU: so many bytes behind the end marker, which
 * are not looked at, keep it on its fast way.
 */
const TAIL_BYTES = 8192;
/** What a small JPEG may take beyond the bytes of the image: its first DCs are coded anew in each row. */
const ROOM_BYTES = 65_536;

/** More than all that stands behind something here. */
const SPARE_BYTES = TAIL_BYTES + CROP_SOURCE_SLACK_BYTES + CROP_INDEX_SLACK_BYTES + 256;

/** A JPEG of a part of an image, in the scratch. */
export interface SmallJpeg {
  /** With bytes behind its end marker. */
  readonly bytes: Uint8Array;
  /** The part, in pixels of the image at its full size. */
  readonly part: Rect;
}

/** Makes small JPEGs of crops by crop indexes. Belongs to one worker. */
export class JpegSplicer {
  readonly #kernel: CropIndexKernel;

  /** `state` is the address of CROP_STATE_BYTES zeros. */
  constructor(memory: KernelMemory, state: number) {
    this.#kernel = new CropIndexKernel(memory, state);
  }

  /**
   * A JPEG of what is needed for `crop`, a part of the image at 1 / `reduction` of its size: decoded as a whole, its pixels are
   * those of the image. Null where the index is not one of this image, or where the scratch is too small.
   */
  splice(image: Uint8Array, index: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): SmallJpeg | null {
    if (index.length === 0 || image.length + SPARE_BYTES > scratch.available) return null;
    const source = place(scratch, image, CROP_SOURCE_SLACK_BYTES);
    if (this.#kernel.parse(source, image.length) < 0) return null;
    const { grid } = this.#kernel;
    const group = index[0]!;
    if (group === 0) return null;
    const range = rangeOf(grid, group, crop, reduction);
    const count = (range.bottom - 1) * Math.ceil(grid.mcusX / group) + range.right + 1;
    const room = image.length + ROOM_BYTES;
    if (index.length + count * CROP_ENTRY_BYTES + room + SPARE_BYTES > scratch.available) return null;
    const packed = place(scratch, index, CROP_INDEX_SLACK_BYTES);
    const entries = scratch.allocate(count * CROP_ENTRY_BYTES);
    if (this.#kernel.unpack(packed, index.length, count, entries) < 0) return null;
    const target = scratch.allocate(room + TAIL_BYTES);
    const bytes = this.#kernel.splice(entries, range, target, room);
    if (bytes < 0) return null;
    return { bytes: scratch.memory.subarray(target, target + bytes + TAIL_BYTES), part: partOf(grid, group, range) };
  }
}

function place(scratch: Scratch, bytes: Uint8Array, slack: number): number {
  const address = scratch.allocate(bytes.length + slack);
  scratch.memory.set(bytes, address);
  return address;
}
