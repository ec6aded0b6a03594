import { totalOf } from '@shardtool/base';
import type { Device, PinnedMemory } from './device.js';
import { CudaError } from './errors.js';

/**
 * The memory in which the loader's batches lie, page-locked so that the device reads it itself. Where the driver refuses
 * that, each batch is copied into memory that the driver gave.
 */
export class PinnedSlots {
  readonly #device: Device;
  #memory: Uint8Array | null = null;
  #address: bigint | null = null;
  #refused: string | null = null;

  constructor(device: Device) {
    this.#device = device;
  }

  /** Bytes that are page-locked. */
  get bytes(): number {
    return this.#address === null ? 0 : this.#memory!.byteLength;
  }

  /** Why the driver refused the memory. Null where it did not, or was not asked. */
  get refused(): string | null {
    return this.#refused;
  }

  /** Page-locks `memory`, where that is another one than before. */
  use(memory: Uint8Array): void {
    if (this.#memory?.buffer === memory.buffer) return;
    this.release();
    this.#memory = memory;
    try {
      this.#address = this.#device.register(memory);
    } catch (error) {
      if (!(error instanceof CudaError)) throw error;
      this.#refused = error.message;
    }
  }

  /** Where `bytes` lie, if they can be copied from there asynchronously. */
  place(bytes: Uint8Array): bigint | null {
    const within = this.#address !== null && bytes.buffer === this.#memory!.buffer;
    return within ? this.#address! + BigInt(bytes.byteOffset - this.#memory!.byteOffset) : null;
  }

  /** No copy out of it is under way any more. */
  release(): void {
    if (this.#address !== null) this.#device.unregister(this.#address);
    this.#address = null;
    this.#memory = null;
    this.#refused = null;
  }
}

/** Page-locked memory of one device slot, for batches that are not: made when it is needed. */
export class Staging {
  readonly #device: Device;
  #pinned: PinnedMemory | null = null;

  constructor(device: Device) {
    this.#device = device;
  }

  get bytes(): number {
    return this.#pinned?.bytes.byteLength ?? 0;
  }

  /** Copies arrays one behind the other; returns their addresses. No copy of what was here may be under way. */
  fill(arrays: readonly Uint8Array[]): bigint[] {
    const total = totalOf(arrays, ({ byteLength }) => byteLength);
    if (total === 0) return arrays.map(() => 0n);
    if (this.bytes < total) {
      const before = this.bytes;
      this.free();
      // The size of annotations differs between batches.
      this.#pinned = this.#device.allocatePinned(Math.max(total, 2 * before));
    }
    const { address, bytes } = this.#pinned!;
    let offset = 0;
    return arrays.map((array) => {
      bytes.set(array, offset);
      const place = address + BigInt(offset);
      offset += array.byteLength;
      return place;
    });
  }

  free(): void {
    if (this.#pinned !== null) this.#device.freePinned(this.#pinned);
    this.#pinned = null;
  }
}
