import { totalOf, WakeSignal } from '@shardtool/base';
import type { DevicePlan, DeviceReport, DeviceStage, HostBatches, Uploads } from '@shardtool/reader';
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
  readonly slots: readonly DeviceSlot[];
  readonly freeSlots: DeviceSlot[];
  /** Notified when a slot or a batch becomes available, and when no more will. */
  readonly wakeSignal = new WakeSignal();
  /** The first error on the device. Later errors are consequences of it. */
  failure: unknown = null;
  #isClosed = false;

  /** Throws NoCudaError, CudaError, or OptionError if the device does not exist. */
  static async open(plan: DevicePlan): Promise<Stage> {
    const device = await Device.open(plan.ordinal);
    const undo = [() => device.close()];
    try {
      const stream = device.createStream();
      undo.push(() => device.destroyStream(stream));
      const converter = new Converter(device, plan, stream);
      undo.push(() => converter.free());
      const slots: DeviceSlot[] = [];
      while (slots.length < plan.slots) {
        const slot = new DeviceSlot(device);
        undo.push(() => slot.destroyEvents());
        slots.push(slot);
      }
      return new Stage(plan, device, stream, converter, slots);
    } catch (error) {
      for (const step of undo.reverse()) step();
      throw error;
    }
  }

  private constructor(
    plan: DevicePlan,
    device: Device,
    stream: bigint,
    converter: Converter,
    slots: readonly DeviceSlot[],
  ) {
    this.plan = plan;
    this.device = device;
    this.stream = stream;
    this.converter = converter;
    this.pinned = new PinnedSlots(device);
    this.slots = slots;
    this.freeSlots = [...slots];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  upload(batches: HostBatches): Uploads {
    return new Upload(this, batches);
  }

  report(): DeviceReport {
    const { name, computeCapability } = this.device;
    const staged = totalOf(this.slots, ({ staging }) => staging.bytes);
    return {
      name,
      computeCapability,
      deviceBytes: this.converter.bytes + totalOf(this.slots, ({ bytes }) => bytes),
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
    // If the context is lost, every call fails, for the reason that is already known.
    if (errors.length > 0 && this.failure === null) throw errors[0];
  }
}
