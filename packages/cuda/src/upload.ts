import type { WakeSignal } from '@shardtool/base';
import { nameTable } from '@shardtool/format';
import type {
  Batch,
  DeviceBatch,
  DevicePlan,
  HostBatches,
  LoaderState,
  StreamHandle,
  Uploads,
} from '@shardtool/reader';
import type { Converter } from './converter.js';
import type { Device } from './device.js';
import { imageArray, maskArray } from './device-array.js';
import { type DeviceSlot, whenDone } from './device-slot.js';
import { deviceObjects, objectArrays } from './objects.js';
import type { PinnedSlots } from './pinned-slots.js';

/** The parts of its stage that an upload uses. */
interface UploadStage {
  readonly plan: DevicePlan;
  readonly device: Device;
  readonly stream: bigint;
  readonly converter: Converter;
  readonly pinned: PinnedSlots;
  readonly freeSlots: DeviceSlot[];
  readonly wakeSignal: WakeSignal;
  readonly isClosed: boolean;
  failure: unknown;
}

/** Alignment of arrays within a slot. The driver allocates memory with the same alignment. */
const ALIGNMENT_BYTES = 256;

/** Minimum size of an array of annotations: enough for 256 boxes. */
const LEAST_OBJECT_BYTES = 4096;

/** One array of a batch: its bytes on the host, and the offset of its values in the slot. */
interface Part {
  readonly kind: 'image' | 'mask' | 'object';
  /** Name of the field in the option `extraImages` or `masks`; null for the image itself and for annotations. */
  readonly field: string | null;
  readonly bytes: Uint8Array;
  readonly offset: number;
}

/**
 * Copies batches to the device in advance, as many as there are device slots. For each batch, it queues on the copy stream: a
 * wait until the previous batch of the slot was consumed, the copies, and the conversion. The slot on the host is released when
 * the copies are finished. The slot on the device is released when the consumer has released the batch, too.
 */
export class Upload implements Uploads {
  readonly #stage: UploadStage;
  readonly #host: HostBatches;
  readonly #pumping: Promise<void>;
  readonly #copies = new Set<Promise<void>>();
  #queue: { readonly batch: DeviceBatch; readonly drop: () => void }[] = [];
  #current: DeviceBatch | null = null;
  #isOver = false;
  #isStopped = false;
  #failure: { readonly reason: unknown } | null = null;

  constructor(stage: UploadStage, host: HostBatches) {
    this.#stage = stage;
    this.#host = host;
    this.#pumping = this.#pump();
  }

  async next(): Promise<DeviceBatch | null> {
    const { device, plan } = this.#stage;
    if (plan.release === 'auto') this.#current?.release();
    this.#current = null;
    this.#stage.wakeSignal.notify();
    while (this.#queue.length === 0) {
      if (this.#failure !== null) throw this.#failure.reason;
      if (this.#isOver) return null;
      await this.#stage.wakeSignal.wait();
    }
    const { batch } = this.#queue.shift()!;
    device.wait(BigInt(plan.stream), batch.ready.handle);
    this.#current = batch;
    return batch;
  }

  stop(reason: unknown): void {
    this.#isStopped = true;
    this.#failure ??= { reason };
    for (const { drop } of this.#queue.splice(0)) drop();
    this.#stage.wakeSignal.notify();
  }

  async end(): Promise<void> {
    this.#isStopped = true;
    for (const { drop } of this.#queue.splice(0)) drop();
    this.#stage.wakeSignal.notify();
    await this.#pumping;
    if (this.#stage.plan.release === 'auto' && this.#failure === null) this.#current?.release();
    this.#current = null;
  }

  async #pump(): Promise<void> {
    const batches = this.#host[Symbol.asyncIterator]();
    let isWhole = false;
    for (let slot = await this.#freeSlot(); slot !== null; slot = await this.#freeSlot()) {
      const batch = await this.#take(batches);
      isWhole = batch === null && !this.#isStopped;
      if (batch === null) {
        this.#stage.freeSlots.push(slot);
        break;
      }
      await this.#send(slot, batch, this.#host.state()).catch((reason: unknown) => this.#fail(reason));
    }
    await Promise.all(this.#copies);
    if (!isWhole) await batches.return?.().catch((reason: unknown) => this.#endWith(reason));
    this.#isOver = true;
    this.#stage.wakeSignal.notify();
  }

  /** Returns null if the upload was stopped. */
  async #freeSlot(): Promise<DeviceSlot | null> {
    while (!this.#isStopped) {
      const slot = this.#stage.freeSlots.shift();
      if (slot !== undefined) return slot;
      await this.#stage.wakeSignal.wait();
    }
    return null;
  }

  /** Returns the next batch of the host; null after the last one, or if the upload was stopped in the meantime. */
  async #take(batches: AsyncIterator<Batch>): Promise<Batch | null> {
    try {
      const { value, done } = await batches.next();
      return done || this.#isStopped ? null : value;
    } catch (reason) {
      this.#endWith(reason);
      return null;
    }
  }

  async #send(slot: DeviceSlot, host: Batch, state: LoaderState): Promise<void> {
    const { device, pinned, converter, stream } = this.#stage;
    const memory = this.#host.slotMemory;
    if (memory !== null) pinned.use(memory);
    const { parts, bytes } = this.#layOut(host);
    await slot.reserve(bytes);
    const places = parts.map((part) => pinned.place(part.bytes));
    const staged = slot.staging.fill(parts.filter((_, i) => places[i] === null).map((part) => part.bytes));
    const sources = places.map((place) => place ?? staged.shift()!);
    // All arrays were copied out of the batch's slot on the host.
    if (parts.every((part, i) => part.kind === 'object' || places[i] === null)) host.release();
    if (slot.wasConsumed) device.wait(stream, slot.consumed);
    parts.forEach((part, i) => {
      const target = slot.address + BigInt(part.offset);
      if (part.bytes.byteLength === 0) return;
      if (part.kind === 'image') converter.enqueue(sources[i]!, part.bytes.byteLength, host.shape![0], target);
      else device.copyToDevice(target, sources[i]!, part.bytes.byteLength, stream);
    });
    device.record(slot.ready, stream);
    this.#give(slot, host, parts, state);
  }

  #layOut(host: Batch): { parts: Part[]; bytes: number } {
    const { converter } = this.#stage;
    const parts: Part[] = [];
    let bytes = 0;
    const add = (kind: Part['kind'], field: string | null, array: Uint8Array): void => {
      parts.push({ kind, field, bytes: array, offset: bytes });
      let length = kind === 'image' ? converter.resultBytes(array.byteLength) : array.byteLength;
      // The number of objects differs between batches. With spare room, memory rarely has to grow.
      if (kind === 'object') length = 2 ** Math.ceil(Math.log2(Math.max(LEAST_OBJECT_BYTES, length)));
      bytes += Math.ceil(length / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    };
    add('image', null, host.images as Uint8Array);
    for (const [field, array] of Object.entries(host.extraImages)) add('image', field, array as Uint8Array);
    for (const [field, array] of Object.entries(host.masks)) add('mask', field, array);
    for (const { values } of objectArrays(host)) {
      add('object', null, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    return { parts, bytes };
  }

  /** Queues the batch for the consumer, and watches its copy. */
  #give(slot: DeviceSlot, host: Batch, parts: readonly Part[], state: LoaderState): void {
    const stage = this.#stage;
    let holders = 2;
    const letGo = (): void => {
      holders--;
      if (holders > 0) return;
      stage.freeSlots.push(slot);
      stage.wakeSignal.notify();
    };
    let isReleased = false;
    const drop = (): void => {
      isReleased = true;
      letGo();
    };
    const release = (to: StreamHandle = stage.plan.stream): void => {
      if (isReleased || stage.isClosed) return;
      stage.device.record(slot.consumed, BigInt(to));
      slot.wasConsumed = true;
      drop();
    };
    this.#queue.push({ batch: this.#batch(slot, host, parts, state, release), drop });
    this.#stage.wakeSignal.notify();
    const copy = whenDone(stage.device, slot.ready)
      .then(() => {
        host.release();
        letGo();
      })
      .catch((reason: unknown) => this.#fail(reason))
      .finally(() => this.#copies.delete(copy));
    this.#copies.add(copy);
  }

  #batch(
    slot: DeviceSlot,
    host: Batch,
    parts: readonly Part[],
    state: LoaderState,
    release: (stream?: StreamHandle) => void,
  ): DeviceBatch {
    const { device, plan } = this.#stage;
    const [rows, height, width] = host.shape!;
    const size = { rows, height, width };
    const objectPlaces = parts
      .filter(({ kind }) => kind === 'object')
      .map(({ offset }) => slot.address + BigInt(offset));
    const arrays = parts.map(({ kind, field, offset }) => {
      const pointer = slot.address + BigInt(offset);
      return { kind, field, array: kind === 'image' ? imageArray(pointer, plan, size) : maskArray(pointer, size) };
    });
    const named = (kind: Part['kind']) =>
      nameTable(
        arrays.flatMap(({ kind: own, field, array }) =>
          own === kind && field !== null ? [[field, array] as const] : [],
        ),
      );
    const images = arrays[0]!.array;
    const { epoch, index, labels, crop, mix, valid, indices, datasetIndex, fields } = host;
    const { offsets, boxes, boxLabels, boxRows, boxSources, keypoints, polygons } = host;
    return {
      epoch,
      index,
      size: host.size,
      labels,
      crop,
      mix,
      valid,
      indices,
      datasetIndex,
      get keys() {
        return host.keys;
      },
      fields,
      offsets,
      boxes,
      boxLabels,
      boxRows,
      boxSources,
      keypoints,
      polygons,
      ...images,
      images,
      extraImages: named('image'),
      masks: named('mask'),
      objects: deviceObjects(objectArrays(host), (i) => objectPlaces[i]!),
      ready: {
        handle: slot.ready,
        wait: (stream) => device.wait(BigInt(stream), slot.ready),
        isDone: () => device.isDone(slot.ready),
        whenDone: () => whenDone(device, slot.ready),
      },
      state,
      release,
    };
  }

  /** Ends with an error of the host. The batches before it are valid. */
  #endWith(reason: unknown): void {
    this.#failure ??= { reason };
  }

  /** Ends with an error of the device. Batches that are ready may be wrong, too, so they are dropped. */
  #fail(reason: unknown): void {
    this.#stage.failure ??= reason;
    this.stop(reason);
  }
}
