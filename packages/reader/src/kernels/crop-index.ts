/**
 * The crop index of baseline JPEGs inside a shared WebAssembly.Memory: the wrapper around assembly/crop-index, which says how
 * it works. Addresses are in bytes from the start of the memory. Calls return what is below zero where they fail: a
 * {@link CropRefusal}'s code.
 */

import { readFileSync } from 'node:fs';
import type { KernelMemory } from './kernel-memory.js';

/** Bytes behind a file that may be read, without influence on what comes out. They must lie inside the memory. */
export const CROP_SOURCE_SLACK_BYTES = 512;
/** The same behind a packed index. */
export const CROP_INDEX_SLACK_BYTES = 16;
/** What one entry takes unpacked; packed it takes at most {@link MOST_PACKED_BYTES}. */
export const CROP_ENTRY_BYTES = 12;
/** Five codes of 56 bits. */
export const MOST_PACKED_BYTES = 35;
/** Behind a packed index of so many entries: its parameters. */
export const PACKED_HEAD_BYTES = 16;
/** Working memory of one kernel, from a multiple of 16 on. At its begin it has to be zeros. */
export const CROP_STATE_BYTES = 25_152;

/** Why an image has no crop index, or a crop no small JPEG, by the kernel's codes. */
const REFUSALS = {
  '-1': 'no JPEG, or markers out of order',
  '-2': 'progressive',
  '-3': 'arithmetic coding',
  '-4': 'lossless',
  '-5': 'not of 8 bits',
  '-6': 'several scans',
  '-7': 'its height stands behind the scan',
  '-8': 'data that do not decode',
  '-9': 'more than an end marker behind the scan',
  '-10': 'too large',
  '-11': 'an index of another image',
  '-12': 'no memory for it',
  '-13': 'no room in a Huffman table',
} as const;

export type CropRefusal = (typeof REFUSALS)[keyof typeof REFUSALS];

/** What a result below zero says. */
export function refusalOf(code: number): CropRefusal {
  return REFUSALS[String(code) as keyof typeof REFUSALS];
}

/** The MCUs of a JPEG: the units of its entropy-coded data. */
export interface McuGrid {
  /** Of the image, in pixels. */
  readonly width: number;
  readonly height: number;
  /** Of one MCU. */
  readonly mcuWidth: number;
  readonly mcuHeight: number;
  /** MCUs in a row, and rows of them. */
  readonly mcusX: number;
  readonly mcusY: number;
}

/** Groups [left, right) of the rows of MCUs [top, bottom). */
export interface GroupRange {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

type KernelExports = Record<'parse' | 'walk' | 'pack' | 'unpack' | 'splice', (...numbers: number[]) => number>;

let compiled: WebAssembly.Module | undefined;

/** The kernel of one worker. It has one JPEG at a time: {@link parse} comes first. */
export class CropIndexKernel {
  readonly #kernel: KernelExports;
  readonly #state: number;
  readonly #words: Int32Array;

  /** `state` is the address of {@link CROP_STATE_BYTES} zeros. */
  constructor(memory: KernelMemory, state: number) {
    compiled ??= new WebAssembly.Module(readFileSync(new URL('./crop-index.wasm', import.meta.url)));
    this.#kernel = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#state = state;
    this.#words = new Int32Array(memory.buffer, state, 8);
  }

  /** Reads the header of a file. 0, or a refusal. */
  parse(source: number, bytes: number): number {
    return this.#kernel.parse(this.#state, source, bytes);
  }

  /** The MCUs of the file that was parsed. */
  get grid(): McuGrid {
    const [width, height, , mcuWidth, mcuHeight, mcusX, mcusY] = this.#words as unknown as number[];
    return { width, height, mcuWidth, mcuHeight, mcusX, mcusY } as McuGrid;
  }

  /** Makes the entries of groups of `group` MCUs, {@link entriesOf} of them. Their number, or a refusal. */
  walk(group: number, entries: number): number {
    return this.#kernel.walk(this.#state, group, entries);
  }

  /** Packs the entries of {@link walk}. The number of bytes. */
  pack(entries: number, count: number, group: number, target: number): number {
    return this.#kernel.pack(this.#state, entries, count, group, target);
  }

  /** Unpacks the first `count` entries of an index, which may be anything. MCUs of a group, or a refusal. */
  unpack(packed: number, bytes: number, count: number, entries: number): number {
    return this.#kernel.unpack(this.#state, packed, bytes, count, entries);
  }

  /** A JPEG of a part, from the entries of {@link unpack}. Its bytes, at most `room`, or a refusal. */
  splice(entries: number, { left, right, top, bottom }: GroupRange, target: number, room: number): number {
    return this.#kernel.splice(this.#state, entries, left, right, top, bottom, target, room);
  }

  /** DC codes of the last splice that the image's own tables lack. */
  get codesAdded(): number {
    return this.#words[7]!;
  }
}

/** Entries of a whole image: one a group, and one for the end. */
export function entriesOf({ mcusX, mcusY }: McuGrid, group: number): number {
  return Math.ceil(mcusX / group) * mcusY + 1;
}
