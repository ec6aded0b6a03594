import type { Device } from './device.js';
import { Staging } from './pinned-slots.js';

/** Device memory for one batch, and the events that say who has it. */
export class DeviceSlot {
  readonly #device: Device;
  /** The batch has left the host, and is in its place, converted. */
  readonly ready: bigint;
  /** The last consumer of this slot is done with it. */
  readonly consumed: bigint;
  readonly staging: Staging;
  address = 0n;
  bytes = 0;
  /** {@link consumed} was recorded since the memory was allocated. */
  wasConsumed = false;

  constructor(device: Device) {
    this.#device = device;
    this.ready = device.createEvent();
    this.consumed = device.createEvent();
    this.staging = new Staging(device);
  }

  /** Makes room. Resolves when the memory that was too small is no longer used. */
  async reserve(bytes: number): Promise<void> {
    if (bytes <= this.bytes) return;
    await this.freeMemory();
    this.address = this.#device.allocate(bytes);
    this.bytes = bytes;
  }

  /** Waits for who had the last batch. */
  async freeMemory(): Promise<void> {
    if (this.wasConsumed) await whenDone(this.#device, this.consumed);
    this.wasConsumed = false;
    if (this.bytes === 0) return;
    this.bytes = 0;
    this.#device.free(this.address);
  }

  destroyEvents(): void {
    for (const event of [this.ready, this.consumed]) this.#device.destroyEvent(event);
  }
}

/** Looks every millisecond: a call that waits would hold up the whole thread. Throws what went wrong on the device. */
export async function whenDone(device: Device, event: bigint): Promise<void> {
  while (!device.isDone(event)) await new Promise((resolve) => setTimeout(resolve, 1));
}
