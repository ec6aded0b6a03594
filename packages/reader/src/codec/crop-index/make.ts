import {
  CROP_ENTRY_BYTES,
  CROP_SOURCE_SLACK_BYTES,
  CROP_STATE_BYTES,
  CropIndexKernel,
  entriesOf,
  MAX_PACKED_BYTES,
  PACKED_HEAD_BYTES,
} from '../../kernels/crop-index.js';
import type { KernelMemory } from '../../kernels/kernel-memory.js';
import { groupOf } from './range.js';

const PAGE_BYTES = 65_536;
/** Error codes of the kernel. */
const BAD_DATA = -8;
const TOO_LARGE = -10;
/** Largest image that gets a crop index, in bytes. */
const MAX_BYTES = 2 ** 29;

/** Makes the crop indexes of images, one at a time. Belongs to one worker. */
export class CropIndexMaker {
  #memory = memoryOf(4 << 20);
  #kernel = new CropIndexKernel(this.#memory, 0);

  /** Returns the packed crop index of an image, valid until the next call. If the image cannot have one, returns an error code below zero. */
  make(image: Uint8Array): Uint8Array | number {
    if (image.length > MAX_BYTES) return TOO_LARGE;
    const entries = aligned(CROP_STATE_BYTES + image.length + CROP_SOURCE_SLACK_BYTES);
    this.#reserve(entries);
    this.#bytes(CROP_STATE_BYTES, image.length).set(image);
    const wrong = this.#kernel.parse(CROP_STATE_BYTES, image.length);
    if (wrong < 0) return wrong;
    const group = groupOf(this.#kernel.grid);
    const most = entriesOf(this.#kernel.grid, group);
    // An entry covers at least one MCU, which takes at least 2 bits for each of its blocks.
    if (most > image.length * 8) return BAD_DATA;
    const packed = entries + most * CROP_ENTRY_BYTES;
    if (this.#reserve(packed + most * MAX_PACKED_BYTES + PACKED_HEAD_BYTES)) {
      this.#bytes(CROP_STATE_BYTES, image.length).set(image);
      this.#kernel.parse(CROP_STATE_BYTES, image.length);
    }
    const count = this.#kernel.walk(group, entries);
    if (count < 0) return count;
    return this.#bytes(packed, this.#kernel.pack(entries, count, group, packed));
  }

  /** Makes sure that the memory has this size. Returns true if the memory was replaced, which loses its content. */
  #reserve(bytes: number): boolean {
    if (bytes <= this.#memory.buffer.byteLength) return false;
    this.#memory = memoryOf(2 * bytes);
    this.#kernel = new CropIndexKernel(this.#memory, 0);
    return true;
  }

  #bytes(address: number, bytes: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, address, bytes);
  }
}

function memoryOf(bytes: number): KernelMemory {
  const pages = Math.min(PAGE_BYTES, Math.ceil(bytes / PAGE_BYTES));
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

function aligned(address: number): number {
  return Math.ceil(address / 16) * 16;
}
