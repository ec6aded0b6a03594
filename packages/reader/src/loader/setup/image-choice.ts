import { DamagedShardError, OptionError, optionName, SampleChecksumError, sentence } from '@shardtool/base';
import { headerOf, isImageField, NPY_FIELD } from '@shardtool/format';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { LoaderOptions } from '../options.js';

/** Options that are only for images, with their values if they are not given. */
const FOR_IMAGES = {
  transform: undefined,
  schedule: undefined,
  views: undefined,
  aspectBuckets: undefined,
  annotations: undefined,
  mix: undefined,
  background: undefined,
  channels: 3,
  maxImages: undefined,
  pixelDtype: 'uint8',
} as const satisfies LoaderOptions;
const LISTS_FOR_IMAGES = ['draws', 'images', 'extraImages', 'masks'] as const;

/** The options that say whether batches have images. */
type ImageLoaderOptions = Pick<
  LoaderOptions,
  'image' | 'customSteps' | keyof typeof FOR_IMAGES | (typeof LISTS_FOR_IMAGES)[number]
>;

/** Throws {@link OptionError} for options that are only for images. */
export function refuseImageOptions(options: ImageLoaderOptions): void {
  const forImages = imageOptionIn(options);
  if (forImages === null) return;
  throw new OptionError(
    {},
    sentence`The option ${optionName(forImages)} is for images, and ${optionName('image')} is false: remove one of them.`,
  );
}

/** The first option that is given and only for images; null if there is none. */
function imageOptionIn(options: ImageLoaderOptions): string | null {
  const single = Object.entries(FOR_IMAGES).find(([name, omitted]) => {
    const value = options[name as keyof typeof FOR_IMAGES];
    return value !== undefined && value !== omitted;
  });
  if (single !== undefined) return single[0];
  const list = LISTS_FOR_IMAGES.find((name) => (options[name] ?? []).length > 0);
  if (list !== undefined) return list;
  return Object.values(options.customSteps ?? {}).some((step) => step !== undefined) ? 'customSteps' : null;
}

/**
 * Whether batches have images. By default they have if an option is given that is only for images, or if samples have a
 * field of an image kind, or `npy` fields of uint8 [height, width, 3]. Reads the first sample if `npy` is the only field
 * that may be an image. Throws {@link OptionError} for a mixture of datasets with and without images.
 */
export async function hasImages(dataset: StoredDataset, options: ImageLoaderOptions = {}): Promise<boolean> {
  if (options.image !== undefined) return options.image !== false;
  if (imageOptionIn(options) !== null) return true;
  if (dataset.mixture === null) return storesImages(dataset);
  const found = await Promise.all(
    dataset.mixture.datasets.map(async (one) => ({ name: one.name, isOfImages: await storesImages(one.dataset) })),
  );
  const withImages = found.find(({ isOfImages }) => isOfImages);
  const without = found.find(({ isOfImages }) => !isOfImages);
  if (withImages === undefined || without === undefined) return withImages !== undefined;
  throw new OptionError(
    {},
    sentence`Samples of ${withImages.name} have images, and those of ${without.name} have none: set ${optionName('image')} to false to load only their fields.`,
  );
}

async function storesImages(dataset: StoredDataset): Promise<boolean> {
  if (dataset.size === 0 || dataset.fields.some(isImageField)) return true;
  if (!dataset.fields.includes(NPY_FIELD)) return false;
  try {
    const bytes = (await dataset.get(0)).fields[NPY_FIELD];
    return bytes !== undefined && headerOf(bytes) !== null;
  } catch (error) {
    // Whether a damaged sample ends the loop is decided when its batch is made.
    if (error instanceof SampleChecksumError || error instanceof DamagedShardError) return false;
    throw error;
  }
}
