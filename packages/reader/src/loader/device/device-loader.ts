import { OptionError, optionName, ShardtoolError, sentence } from '@shardtool/base';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { TransformInput } from '../../transform/transform.js';
import type { LoaderReport } from '../deliver/statistics.js';
import { splitByTaker, WaitLog, type WaitTimes, waitsBetween } from '../deliver/waits.js';
import { closedError, Loader } from '../loader.js';
import type { LoaderInfo } from '../loader-info.js';
import type { LoaderState } from '../loader-state.js';
import { Progress } from '../progress.js';
import type { DeviceBatch, DevicePlan, DeviceReport, DeviceStage, HostBatches, Uploads } from './device-batch.js';
import { bytesOf, type DeviceLoaderOptions, planDevice, type Values } from './device-options.js';

/** The package for the device, such as `@shardtool/cuda`, is not installed, or does not load. */
export class NoDevicePackageError extends ShardtoolError {
  static override readonly kind: string = 'NoDevicePackageError';
}

/** {@link Loader} with batches in the memory of a GPU. Iterating and closing work as for a loader. */
export class DeviceLoader implements AsyncIterable<DeviceBatch>, AsyncDisposable {
  readonly #loader: Loader;
  readonly #plan: DevicePlan;
  readonly #packageName: string;
  readonly #values: Values;
  #opening: Promise<DeviceStage> | null = null;
  #stage: DeviceStage | null = null;
  #loop: { uploads: Uploads | null } | null = null;
  /** Batches are taken ahead of the consumer. */
  readonly #progress = new Progress({ isAhead: true });
  readonly #waits = new WaitLog();
  /** Waits of the uploads, so far. */
  readonly #hostWaits: () => WaitTimes;

  /** Throws {@link OptionError} for options that are not allowed. */
  constructor(dataset: StoredDataset, options: DeviceLoaderOptions) {
    const { plan, packageName, host, values } = planDevice(options);
    this.#plan = plan;
    this.#packageName = packageName;
    this.#values = values;
    this.#loader = new Loader(dataset, host, this.#progress);
    this.#hostWaits = this.#loader.reportConsumer(this.#waits);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DeviceBatch, undefined> {
    if (this.#loop !== null) {
      throw new OptionError(
        {},
        'A loop over this loader is already running: end that loop first, or create a second loader.',
      );
    }
    const loop: { uploads: Uploads | null } = { uploads: null };
    this.#loop = loop;
    let isWhole = false;
    let asked = performance.now();
    let consumerMs = 0;
    let before = this.#hostWaits();
    try {
      const stage = await this.#open();
      if (this.#loop !== loop) throw closedError();
      const uploads = stage.upload(hostBatches(this.#loader));
      loop.uploads = uploads;
      try {
        for (let batch = await uploads.next(); batch !== null; batch = await uploads.next()) {
          this.#progress.deliver(batch.state);
          const at = performance.now();
          const waits = splitByTaker(at - asked, waitsBetween(before, this.#hostWaits()));
          this.#waits.add({ epoch: batch.epoch, rows: batch.size, at, consumerMs, waits });
          yield batch;
          asked = performance.now();
          consumerMs = asked - at;
          before = this.#hostWaits();
        }
        isWhole = true;
      } finally {
        await uploads.end();
      }
    } finally {
      if (this.#loop === loop) {
        this.#loop = null;
        if (!isWhole) await this.close();
      }
    }
  }

  /** Like {@link Loader.setEpoch}. */
  setEpoch(epoch: number, { transform }: { readonly transform?: TransformInput | undefined } = {}): void {
    this.#loader.setEpoch(epoch, { transform: transform && bytesOf(transform, this.#values) });
  }

  /** Returns the position of the run after the last delivered batch. Batches that were taken ahead do not count. */
  state(): LoaderState {
    return this.#loader.state();
  }

  /** Describes the next iteration. `slotBytes` are bytes on the host. */
  info(): Promise<LoaderInfo> {
    return this.#loader.info();
  }

  /** Like {@link Loader.metrics}, for batches on the device. */
  metrics(options: { readonly prefix?: string } = {}): Record<string, number> {
    return this.#loader.metrics(options);
  }

  /** Like {@link Loader.metricsUrl}. */
  get metricsUrl(): string | null {
    return this.#loader.metricsUrl;
  }

  /**
   * Reports of the host, for which the copies are the consumer, and of the device (null before it is used). `wait` is
   * about the consumer of this loader.
   */
  report(): LoaderReport & { readonly device: DeviceReport | null } {
    return { ...this.#loader.report(), device: this.#stage?.report() ?? null };
  }

  /**
   * Ends the workers. Frees all memory, including that of batches in use, after the work that was queued on streams
   * before their release. The loader may be iterated again.
   */
  async close(): Promise<void> {
    const loop = this.#loop;
    this.#loop = null;
    loop?.uploads?.stop(closedError());
    await this.#loader.close();
    await loop?.uploads?.end();
    await this.#closeStage();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): Promise<DeviceStage> {
    this.#opening ??= openStage(this.#plan, this.#packageName).then(
      (stage) => {
        this.#stage = stage;
        return stage;
      },
      (error: unknown) => {
        this.#opening = null;
        throw error;
      },
    );
    return this.#opening;
  }

  async #closeStage(): Promise<void> {
    const opening = this.#opening;
    this.#opening = null;
    const stage = await opening?.catch(() => null);
    this.#stage = null;
    await stage?.close();
  }
}

/** The loader as a source for a device stage, with the state after each batch that the stage takes. */
function hostBatches(loader: Loader): HostBatches {
  return {
    [Symbol.asyncIterator]: () => loader[Symbol.asyncIterator](),
    get slotMemory() {
      return loader.slotMemory;
    },
    state: () => loader.takenState(),
  };
}

async function openStage(plan: DevicePlan, packageName: string): Promise<DeviceStage> {
  let device: { openDevice(plan: DevicePlan): Promise<DeviceStage> };
  try {
    device = await import(packageName);
  } catch (cause) {
    throw new NoDevicePackageError(
      {},
      sentence`The option ${optionName('device')} needs the package ${packageName}, which cannot be loaded (${(cause as Error).message}): install it, or remove the option ${optionName('device')}.`,
      { cause },
    );
  }
  return device.openDevice(plan);
}
