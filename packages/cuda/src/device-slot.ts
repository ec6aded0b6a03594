import type { Device } from './device.js';
import { Staging } from './pinned-slots.js';

/** Device memory for one batch, and the events that mark when it is ready and when it was consumed. */
export class DeviceSlot {
  readonly #device: Device;
  /** Event: the batch has been copied and converted. */
  readonly ready: bigint;
  /** Event: the last consumer of this slot is finished with it. */
  readonly consumed: bigint;
  readonly staging: Staging;
  address = 0n;
  bytes = 0;
  /** True if {@link consumed} was recorded since the memory was allocated. */
  wasConsumed = false;

  constructor(device: Device) {
    this.#device = device;
    this.ready = device.createEvent();
    this.consumed = device.createEvent();
    this.staging = new Staging(device);
  }

  /** Replaces the memory if it is smaller than this. Waits until the old memory is no longer used. */
  async reserve(bytes: number): Promise<void> {
    if (bytes <= this.bytes) return;
    await this.freeMemory();
    this.address = this.#device.allocate(bytes);
    this.bytes = bytes;
  }

  /** Frees the memory, after the consumer of the last batch is finished. */
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

/** Checks an event every millisecond, because a waiting call would block the whole thread. Throws errors of the device. */
export async function whenDone(device: Device, event: bigint): Promise<void> {
  while (!device.isDone(event)) await new Promise((resolve) => setTimeout(resolve, 1));
}
