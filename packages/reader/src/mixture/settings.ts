import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { SelectionRequest } from '../selection/selection.js';
import type { MixturePolicy } from './shares.js';

/** One dataset of a mixture. */
export interface MixedDataset<Of extends StoredDataset = StoredDataset> {
  /** Name in messages. */
  readonly name: string;
  readonly dataset: Of;
  /** Selection of its samples. */
  readonly selection: SelectionRequest;
}

/** How datasets are mixed. */
export interface MixtureSettings<Of extends StoredDataset = StoredDataset> {
  readonly datasets: readonly MixedDataset<Of>[];
  /** Number of samples of each dataset in an epoch. */
  readonly policy: MixturePolicy;
  /**
   * Number of consecutive samples of a dataset, and number of such groups that are shuffled together. Undefined: they
   * depend on the batch.
   */
  readonly group: number | undefined;
  readonly window: number | undefined;
}

/** Returns how the datasets of a mixture are mixed; null for a single dataset. */
export function mixtureOf(dataset: StoredDataset): MixtureSettings | null {
  // Only the class Mixture sets this property, to its settings.
  return dataset.mixture as MixtureSettings | null;
}
