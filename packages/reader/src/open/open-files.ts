import { statSync } from 'node:fs';
import { abortable } from '@shardtool/base';
import { isRemote } from '@shardtool/storage';
import { StoredDataset } from '../dataset/stored-dataset.js';
import { findParts, type OpenOptions } from './find-parts.js';

/**
 * Opens a dataset like `openDataset`, but without the code of loaders, unless it is a mixture. Throws the errors of
 * `openDataset`.
 */
export async function openFiles(location: string, options: OpenOptions = {}): Promise<StoredDataset> {
  if (isMixtureFile(location)) return (await import('./open.js')).openDataset(location, options);
  return abortable(
    options.signal,
    async () => new StoredDataset(await findParts(location, options)),
    (dataset) => dataset.close(),
  );
}

/** True for a file that describes a mixture: `{ "mixture": [{ "dataset": "a", "weight": 0.7 }, ...] }`. */
export function isMixtureFile(location: string): boolean {
  return location.endsWith('.json') && !isRemote(location) && isFile(location);
}

function isFile(location: string): boolean {
  return statSync(location, { throwIfNoEntry: false })?.isFile() ?? false;
}
