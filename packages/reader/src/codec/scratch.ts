import { option, optionName, SampleDecodeError, sentence } from '@shardtool/base';
import type { KernelMemory } from '../kernels/kernel-memory.js';

/** A worker's part of the shared WebAssembly memory, in bytes. */
export interface Region {
  readonly offset: number;
  readonly bytes: number;
}

/** Scratch memory of a worker: allocates from front to back for one image, and frees everything at once. */
export class Scratch {
  /** The whole shared memory, so that an address is an index. */
  readonly memory: Uint8Array;
  readonly #region: Region;
  #used = 0;

  constructor(memory: KernelMemory, region: Region) {
    this.memory = new Uint8Array(memory.buffer);
    this.#region = region;
  }

  /** Frees everything. */
  reset(): void {
    this.#used = 0;
  }

  /** The state to which {@link release} returns. */
  mark(): number {
    return this.#used;
  }

  /** Frees what was allocated since {@link mark}. */
  release(mark: number): void {
    this.#used = mark;
  }

  get available(): number {
    return this.#region.bytes - this.#used;
  }

  /**
   * Allocates `bytes` bytes and returns their address, which is `phase` modulo `alignment` (a power of two). Throws
   * {@link SampleDecodeError} if the image needs more memory than there is.
   */
  allocate(bytes: number, alignment = 16, phase = 0): number {
    const next = this.#region.offset + this.#used - phase;
    const offset = Math.ceil(next / alignment) * alignment + phase;
    const used = offset + bytes - this.#region.offset;
    if (used > this.#region.bytes) {
      throw new SampleDecodeError(
        {},
        sentence`it needs ${megabytes(used)} of decode memory, but a worker has ${megabytes(this.#region.bytes)}; use fewer workers or ${optionName('prefetchBatches')}, or pack with ${option('resize')}`,
      );
    }
    this.#used = used;
    return offset;
  }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
