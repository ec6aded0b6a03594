import type { Dataset } from '@shardtool/reader';
import { UsageError } from '../terminal/outcome.js';

/** Throws {@link UsageError}, with a remedy, if the samples of the dataset have no images. */
export async function refuseWithoutImages(dataset: Dataset, remedy: string): Promise<void> {
  const { hasImages } = await import('@shardtool/reader');
  if (await hasImages(dataset)) return;
  throw new UsageError(`The samples of ${dataset.location} have no images: ${remedy}.`);
}
