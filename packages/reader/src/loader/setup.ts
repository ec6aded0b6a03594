import type { Dataset } from '../dataset/dataset.js';
import type { CheckedOptions } from './options.js';
import { type ShardStore, withoutCrops } from './read/load-shards.js';
import { type LoaderMemory, setUpMemory } from './setup/memory.js';
import { type LoaderOrder, setUpOrder } from './setup/order.js';
import { type LoaderOutput, setUpOutput } from './setup/output.js';

/** Everything about a loader that does not change from epoch to epoch. */
export interface LoaderSetup {
  readonly order: LoaderOrder;
  readonly output: LoaderOutput;
  /** Where samples are read from. */
  readonly store: ShardStore;
  readonly memory: LoaderMemory;
}

/** Turns checked options into a setup; reads as much of the dataset as the options ask for. Throws OptionError. */
export async function setUp(dataset: Dataset, options: CheckedOptions): Promise<LoaderSetup> {
  const order = await setUpOrder(dataset, options);
  const output = await setUpOutput(dataset, options);
  const store = output.usesCropIndex ? dataset.files : withoutCrops(dataset.files);
  const memory = await setUpMemory(dataset, store, order, output, options);
  return { order, output, store, memory };
}
