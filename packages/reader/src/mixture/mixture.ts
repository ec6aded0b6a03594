import { Dataset } from '../dataset/dataset.js';
import type { DatasetParts } from '../dataset/stored-dataset.js';
import type { SelectionRequest } from '../selection/selection.js';
import type { MixturePolicy } from './shares.js';

/** One dataset of a mixture. */
export interface MixedDataset {
  /** As messages name it. */
  readonly name: string;
  readonly dataset: Dataset;
  /** Which of its samples take part. */
  readonly selection: SelectionRequest;
}

/** How datasets are mixed. */
export interface MixtureSettings {
  readonly datasets: readonly MixedDataset[];
  /** How many samples of each an epoch has. */
  readonly policy: MixturePolicy;
  /** Samples of a dataset that follow each other, and how many such groups are shuffled together; undefined: by the batch. */
  readonly group: number | undefined;
  readonly window: number | undefined;
}

/**
 * Several datasets as one: its shards are those of all, one dataset behind the other, and its loaders mix their samples.
 * Every other look at it (samples, statistics) goes through them one by one. Numbers of samples count through all of
 * them; those of a loader's batches count within `batch.source`.
 */
export class Mixture extends Dataset {
  override readonly mixture: MixtureSettings;
  readonly #owned: readonly Dataset[];

  /** `owned` are closed with it. */
  constructor(parts: DatasetParts, settings: MixtureSettings, owned: readonly Dataset[]) {
    super(parts);
    this.mixture = settings;
    this.#owned = owned;
  }

  /** The datasets, in the order of `batch.source`. */
  get datasets(): readonly Dataset[] {
    return this.mixture.datasets.map(({ dataset }) => dataset);
  }

  override async close(): Promise<void> {
    await super.close();
    await Promise.all(this.#owned.map((dataset) => dataset.close()));
  }
}
