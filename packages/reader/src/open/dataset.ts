import { checkObject, OptionError } from '@shardtool/base';
import type { DatasetStats, StatsOptions } from '../dataset/figures/stats.js';
import { StoredDataset } from '../dataset/stored-dataset.js';
import type { InspectReport } from '../inspect/report.js';
import type { ContentOf, OnlyOptions } from '../loader/deliver/batch/batch-content.js';
import { DeviceLoader } from '../loader/device/device-loader.js';
import type { DeviceLoaderOptions } from '../loader/device/device-options.js';
import { Loader } from '../loader/loader.js';
import type { LoaderOptions } from '../loader/options.js';
import type { PlanReport } from '../order/report/report.js';
import type { DatasetPlanOptions } from '../plans/plan-dataset.js';
import type { InspectOptions } from './inspect.js';
import { type VerifyOptions, type VerifyReport, verifyAt } from './verification.js';

/** The device for batches. Undefined: batches stay in the memory of the host. */
type Device = DeviceLoaderOptions['device'] | undefined;

/** A dataset that can be inspected and trained on. When it is closed, its loaders end with an error. */
export class Dataset extends StoredDataset {
  /**
   * Returns a loader of shuffled, decoded batches; with the option `device`, in the memory of a GPU. Throws OptionError
   * for invalid options.
   */
  loader(options: DeviceLoaderOptions): DeviceLoader;
  loader(): Loader<ContentOf<object>>;
  loader<const Options extends LoaderOptions & { readonly device?: undefined }>(
    options: OnlyOptions<Options>,
  ): Loader<ContentOf<Options>>;
  loader(options: LoaderOptions & { readonly device?: Device }): Loader | DeviceLoader;
  loader(options: LoaderOptions & { readonly device?: Device } = {}): Loader | DeviceLoader {
    checkObject('A loader', options);
    const { device, ...host } = options;
    return device === undefined ? new Loader(this, host) : new DeviceLoader(this, { ...host, device });
  }

  /** Sums up the dataset from its indexes: classes, fields, sizes. See `getStats`. */
  async stats(options: StatsOptions = {}): Promise<DatasetStats> {
    const { getStats } = await import('../dataset/figures/stats.js');
    return getStats(this, options);
  }

  /** Predicts what an epoch costs each rank, and the shuffle quality. Reads only indexes. See `planDataset`, and `planMixture` for a mixture. */
  async plan(options: DatasetPlanOptions = {}): Promise<PlanReport> {
    const { planDataset } = await import('../plans/plan-dataset.js');
    return planDataset(this, options);
  }

  /**
   * Measures every image of the stored dataset, without its overlay, and reports images that may have problems. See the
   * function `inspect`. Throws OptionError for a mixture.
   */
  async inspect(options: InspectOptions = {}): Promise<InspectReport> {
    const { inspect } = await import('./inspect.js');
    return inspect(this.#storedAt('inspect'), this.#withStorage(options));
  }

  /**
   * Compares all bytes of the stored dataset with their checksums, and checks its overlays. See the function `verify`.
   * Throws OptionError for a mixture.
   */
  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return verifyAt(this.#storedAt('verify'), this.#withStorage(options));
  }

  /** Location of the shards, for calls that read it again. */
  #storedAt(call: string): string {
    if (this.mixture === null) return this.location;
    throw new OptionError({}, `${this.location} is a mixture: call ${call} on each of its datasets.`);
  }

  /** The options with those of the storage that the dataset was opened with. */
  #withStorage<Options extends InspectOptions | VerifyOptions>(options: Options): Options {
    checkObject('A call of a dataset', options);
    return options.storage === undefined ? { ...options, storage: this.shards[0]?.storage } : options;
  }
}
