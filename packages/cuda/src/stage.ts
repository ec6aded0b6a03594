import type { DevicePlan, DeviceReport, DeviceStage, HostBatches, Uploads } from '@shardtool/reader';
import { Bell } from './bell.js';
import { Converter } from './converter.js';
import { Device } from './device.js';
import { DeviceSlot } from './device-slot.js';
import { PinnedSlots } from './pinned-slots.js';
import { Upload } from './upload.js';

/** A device with a copy stream, slots for batches, and the kernel that fills them. */
export class Stage implements DeviceStage {
  readonly plan: DevicePlan;
  readonly device: Device;
  readonly stream: bigint;
  readonly converter: Converter;
  readonly pinned: PinnedSlots;
  readonly slots: DeviceSlot[] = [];
  readonly freeSlots: DeviceSlot[] = [];
  /** Rings when a slot or a batch is there, or will not be. */
  readonly bell = new Bell();
  /** What went wrong on the device: what fails after that says nothing new. */
  failure: unknown = null;
  #isClosed = false;

  /** Throws NoCudaError, CudaError, or OptionError for a device that there is not. */
  static async open(plan: DevicePlan): Promise<Stage> {
    const device = await Device.open(plan.ordinal);
    try {
      return new Stage(device, plan);
    } catch (error) {
      device.close();
      throw error;
    }
  }

  private constructor(device: Device, plan: DevicePlan) {
    this.device = device;
    this.plan = plan;
    this.stream = device.createStream();
    this.converter = new Converter(device, plan, this.stream);
    this.pinned = new PinnedSlots(device);
    for (let slot = 0; slot < plan.slots; slot++) this.slots.push(new DeviceSlot(device));
    this.freeSlots.push(...this.slots);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  upload(batches: HostBatches): Uploads {
    return new Upload(this, batches);
  }

  report(): DeviceReport {
    const { name, computeCapability } = this.device;
    const staged = this.slots.reduce((sum, { staging }) => sum + staging.bytes, 0);
    return {
      name,
      computeCapability,
      deviceBytes: this.slots.reduce((sum, { bytes }) => sum + bytes, this.converter.bytes),
      pinnedBytes: this.pinned.bytes + staged,
      pinned: this.pinned.bytes > 0 ? 'slots' : staged > 0 ? 'copy' : null,
      pinnedBecause: this.pinned.refused,
    };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const errors: unknown[] = [];
    const attempt = async (step: () => void | Promise<void>): Promise<void> => {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    };
    await attempt(() => this.device.synchronize(this.stream));
    for (const slot of this.slots) {
      await attempt(() => slot.freeMemory());
      await attempt(() => slot.staging.free());
      await attempt(() => slot.destroyEvents());
    }
    await attempt(() => this.pinned.release());
    await attempt(() => this.converter.free());
    await attempt(() => this.device.destroyStream(this.stream));
    await attempt(() => this.device.close());
    // With a lost context everything fails, for the reason that is known.
    if (errors.length > 0 && this.failure === null) throw errors[0];
  }
}
