import { SampleDecodeError } from '@shardtool/base';
import type { KernelMemory } from '../kernels/kernel-memory.js';

/** Where a worker's scratch lies in the shared WebAssembly memory, in bytes. */
export interface Region {
  readonly offset: number;
  readonly bytes: number;
}

/** A worker's part of the shared memory, handed out front to back for one image and taken back as a whole. */
export class Scratch {
  /** All of the memory, so that an address is an index. */
  readonly memory: Uint8Array;
  readonly #region: Region;
  #used = 0;

  constructor(memory: KernelMemory, region: Region) {
    this.memory = new Uint8Array(memory.buffer);
    this.#region = region;
  }

  /** Takes everything back. */
  reset(): void {
    this.#used = 0;
  }

  get available(): number {
    return this.#region.bytes - this.#used;
  }

  /**
   * The address of `bytes` free bytes; it is `phase` modulo `alignment` (a power of two). Throws
   * {@link SampleDecodeError} where the image needs more than there is.
   */
  allocate(bytes: number, alignment = 16, phase = 0): number {
    const next = this.#region.offset + this.#used - phase;
    const offset = Math.ceil(next / alignment) * alignment + phase;
    const used = offset + bytes - this.#region.offset;
    if (used > this.#region.bytes) {
      throw new SampleDecodeError(
        {},
        `it needs ${megabytes(used)} of decode memory and a worker has ${megabytes(this.#region.bytes)}; ` +
          'use fewer workers or prefetchBatches, or pack with --resize',
      );
    }
    this.#used = used;
    return offset;
  }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
