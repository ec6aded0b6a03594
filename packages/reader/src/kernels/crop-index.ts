/**
 * Crop indexes of baseline JPEGs in a shared WebAssembly.Memory: the wrapper around assembly/crop-index, which explains the
 * algorithm. Addresses are in bytes from the start of the memory. Calls that fail return a code below zero: see
 * {@link refusalOf}.
 */

import type { KernelMemory } from './kernel-memory.js';
import { readKernel } from './read-kernel.js';

/** Number of bytes after a file that may be read. They must be inside the memory, and do not influence the result. */
export const CROP_SOURCE_SLACK_BYTES = 512;
/** Number of bytes after a packed index that may be read. They must be inside the memory, and do not influence the result. */
export const CROP_INDEX_SLACK_BYTES = 16;
/** Size of an unpacked entry in bytes. A packed entry takes at most {@link MAX_PACKED_BYTES}. */
export const CROP_ENTRY_BYTES = 12;
/** Largest size of a packed entry in bytes: five codes of 56 bits. */
export const MAX_PACKED_BYTES = 35;
/** Size of the parameters of a packed index in bytes. */
export const PACKED_HEAD_BYTES = 16;
/** Size of the working memory of a kernel in bytes. It starts at a multiple of 16, and must be zero at first. */
export const CROP_STATE_BYTES = 25_152;

/** The reasons why an image cannot have a crop index, or a crop cannot become a small JPEG, by code of the kernel. */
const REFUSALS = {
  '-1': 'not a JPEG, or markers out of order',
  '-2': 'progressive',
  '-3': 'arithmetic coding',
  '-4': 'lossless',
  '-5': 'not 8 bits per sample',
  '-6': 'several scans',
  '-7': 'its height is defined after the scan',
  '-8': 'damaged data',
  '-9': 'more than an end marker after the scan',
  '-10': 'too large',
  '-11': 'an index of another image',
  '-12': 'not enough memory',
  '-13': 'no free code in a Huffman table',
} as const;

export type CropRefusal = (typeof REFUSALS)[keyof typeof REFUSALS];

/** The reason for a result below zero. */
export function refusalOf(code: number): CropRefusal {
  return REFUSALS[String(code) as keyof typeof REFUSALS];
}

/** The MCUs of a JPEG: the units of its entropy-coded data. */
export interface McuGrid {
  /** Width of the image in pixels. */
  readonly width: number;
  /** Height of the image in pixels. */
  readonly height: number;
  /** Width of an MCU in pixels. */
  readonly mcuWidth: number;
  /** Height of an MCU in pixels. */
  readonly mcuHeight: number;
  /** Number of MCUs in a row. */
  readonly mcusX: number;
  /** Number of rows of MCUs. */
  readonly mcusY: number;
}

/** A range: the groups [left, right) in the rows of MCUs [top, bottom). */
export interface GroupRange {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

type KernelExports = Record<'parse' | 'walk' | 'pack' | 'unpack' | 'splice', (...numbers: number[]) => number>;

let compiled: WebAssembly.Module | undefined;

/** The kernel of one worker. It handles one JPEG at a time: call {@link parse} first. */
export class CropIndexKernel {
  readonly #kernel: KernelExports;
  readonly #state: number;
  readonly #words: Int32Array;

  /** `state` is the address of {@link CROP_STATE_BYTES} zero bytes. */
  constructor(memory: KernelMemory, state: number) {
    compiled ??= new WebAssembly.Module(readKernel(new URL('./crop-index.wasm', import.meta.url)));
    this.#kernel = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#state = state;
    this.#words = new Int32Array(memory.buffer, state, 8);
  }

  /** Parses the header of a file. Returns 0, or a code below zero. */
  parse(source: number, bytes: number): number {
    return this.#kernel.parse(this.#state, source, bytes);
  }

  /** The MCUs of the parsed file. */
  get grid(): McuGrid {
    const [width, height, , mcuWidth, mcuHeight, mcusX, mcusY] = this.#words as unknown as number[];
    return { width, height, mcuWidth, mcuHeight, mcusX, mcusY } as McuGrid;
  }

  /** Makes the entries for groups of `group` MCUs; {@link entriesOf} is their number. Returns that number, or a code below zero. */
  walk(group: number, entries: number): number {
    return this.#kernel.walk(this.#state, group, entries);
  }

  /** Packs the entries of {@link walk}. Returns the number of bytes. */
  pack(entries: number, count: number, group: number, target: number): number {
    return this.#kernel.pack(this.#state, entries, count, group, target);
  }

  /** Unpacks the first `count` entries of an index, which need not be valid. Returns the number of MCUs in a group, or a code below zero. */
  unpack(packed: number, bytes: number, count: number, entries: number): number {
    return this.#kernel.unpack(this.#state, packed, bytes, count, entries);
  }

  /** Makes a JPEG of a range from the entries of {@link unpack}. Returns its length, at most `room` bytes, or a code below zero. */
  splice(entries: number, { left, right, top, bottom }: GroupRange, target: number, room: number): number {
    return this.#kernel.splice(this.#state, entries, left, right, top, bottom, target, room);
  }

  /** Number of DC codes that the last splice had to add to the image's tables. */
  get codesAdded(): number {
    return this.#words[7]!;
  }
}

/** Number of entries of a whole image: one per group, and one for the end. */
export function entriesOf({ mcusX, mcusY }: McuGrid, group: number): number {
  return Math.ceil(mcusX / group) * mcusY + 1;
}
