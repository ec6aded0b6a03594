import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { SelectionRequest } from '../selection/selection.js';
import type { MixturePolicy } from './shares.js';

/** One dataset of a mixture. */
export interface MixedDataset<Of extends StoredDataset = StoredDataset> {
  /** As messages name it. */
  readonly name: string;
  readonly dataset: Of;
  /** Which of its samples take part. */
  readonly selection: SelectionRequest;
}

/** How datasets are mixed. */
export interface MixtureSettings<Of extends StoredDataset = StoredDataset> {
  readonly datasets: readonly MixedDataset<Of>[];
  /** How many samples of each an epoch has. */
  readonly policy: MixturePolicy;
  /** Samples of a dataset that follow each other, and how many such groups are shuffled together; undefined: by the batch. */
  readonly group: number | undefined;
  readonly window: number | undefined;
}

/** Returns how the datasets of a mixture are mixed; null for a single dataset. */
export function mixtureOf(dataset: StoredDataset): MixtureSettings | null {
  // Only the class Mixture sets this property, to its settings.
  return dataset.mixture as MixtureSettings | null;
}
