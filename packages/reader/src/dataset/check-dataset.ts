import { OptionError } from '@shardtool/base';
import type { StoredDataset } from './stored-dataset.js';

/** Throws OptionError unless `dataset`, the first argument of a call, is an open dataset. */
export function checkDataset(call: string, dataset: unknown): asserts dataset is StoredDataset {
  if (typeof dataset === 'object' && dataset !== null && 'files' in dataset && 'shards' in dataset) return;
  const hint = typeof dataset === 'string' ? ', and not its location: open it with openDataset first.' : '.';
  throw new OptionError({}, `${call} takes an open dataset${hint}`);
}
