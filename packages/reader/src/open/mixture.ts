import type { DatasetParts } from '../dataset/stored-dataset.js';
import type { MixtureSettings } from '../mixture/settings.js';
import { Dataset } from './dataset.js';

/**
 * Several datasets as one. Its shards are the shards of all datasets in sequence, and its loaders mix their samples.
 * Everything else (samples, statistics) treats them one by one. Sample indices count through all datasets; in the
 * batches of a loader, they count within the dataset that `batch.datasetIndex` names.
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
