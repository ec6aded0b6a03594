import type { DatasetParts } from '../dataset/stored-dataset.js';
import type { MixtureSettings } from '../mixture/settings.js';
import { Dataset } from './dataset.js';

/**
 * Several datasets as one: its shards are those of all, one dataset behind the other, and its loaders mix their samples.
 * Every other look at it (samples, statistics) goes through them one by one. Numbers of samples count through all of
 * them; those of a loader's batches count within `batch.datasetIndex`.
 */
export class Mixture extends Dataset {
  override readonly mixture: MixtureSettings<Dataset>;
  readonly #owned: readonly Dataset[];

  /** `owned` are closed with it. */
  constructor(parts: DatasetParts, settings: MixtureSettings<Dataset>, owned: readonly Dataset[]) {
    super(parts);
    this.mixture = settings;
    this.#owned = owned;
  }

  /** The datasets, in the order of `batch.datasetIndex`. */
  get datasets(): readonly Dataset[] {
    return this.mixture.datasets.map(({ dataset }) => dataset);
  }

  override async close(): Promise<void> {
    await super.close();
    await Promise.all(this.#owned.map((dataset) => dataset.close()));
  }
}
