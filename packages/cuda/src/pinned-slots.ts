import { totalOf } from '@shardtool/base';
import type { Device, PinnedMemory } from './device.js';
import { CudaError } from './errors.js';

/**
 * The memory of the loader's batches, page-locked so that the device can read it directly. If the driver refuses to page-lock
 * it, each batch is first copied into page-locked memory that the driver allocated.
 */
export class PinnedSlots {
  readonly #device: Device;
  #memory: Uint8Array | null = null;
  #address: bigint | null = null;
  #refused: string | null = null;

  constructor(device: Device) {
    this.#device = device;
  }

  /** Number of page-locked bytes. */
  get bytes(): number {
    return this.#address === null ? 0 : this.#memory!.byteLength;
  }

  /** The driver's error if it refused to page-lock the memory; null if it did not, or if there was no attempt. */
  get refused(): string | null {
    return this.#refused;
  }

  /** Page-locks `memory`, unless it already is. */
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

  /** The address of `bytes`; null if they cannot be copied asynchronously from there. */
  place(bytes: Uint8Array): bigint | null {
    const within = this.#address !== null && bytes.buffer === this.#memory!.buffer;
    return within ? this.#address! + BigInt(bytes.byteOffset - this.#memory!.byteOffset) : null;
  }

  /** Unlocks the memory. All copies from it must be finished. */
  release(): void {
    if (this.#address !== null) this.#device.unregister(this.#address);
    this.#address = null;
    this.#memory = null;
    this.#refused = null;
  }
}

/** Page-locked memory of one device slot, for batches that are not page-locked. It is allocated when it is first needed. */
export class Staging {
  readonly #device: Device;
  #pinned: PinnedMemory | null = null;

  constructor(device: Device) {
    this.#device = device;
  }

  get bytes(): number {
    return this.#pinned?.bytes.byteLength ?? 0;
  }

  /** Copies arrays into the memory in sequence and returns their addresses. Earlier copies from this memory must be finished. */
  fill(arrays: readonly Uint8Array[]): bigint[] {
    const total = totalOf(arrays, ({ byteLength }) => byteLength);
    if (total === 0) return arrays.map(() => 0n);
    if (this.bytes < total) {
      const before = this.bytes;
      this.free();
      // The sizes of annotations differ between batches, so the memory may have to grow.
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
