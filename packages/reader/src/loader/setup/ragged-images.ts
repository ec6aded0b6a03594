/** The option `images`: a varying number of images per sample, one after the other in one array. */
import { didYouMean, OptionError, optionName, sentence } from '@shardtool/base';
import { isNamedAsImage } from '@shardtool/format';
import { matchingFields } from '../../dataset/fields/matching-fields.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { OutputRequest } from './output-request.js';

/** The images of each sample. */
export interface RaggedImages {
  /** Names of fields, or patterns with `*`. */
  readonly patterns: readonly string[];
  /** The fields of the dataset that match, as far as they are known when it is opened: see {@link matchingFields}. */
  readonly fields: readonly string[];
  /** Largest number of images of a sample, which sets the memory of a batch. */
  readonly max: number;
}

/**
 * The images of the option `images`. Of a Parquet dataset, only the fields of one row group are known when it is opened, so
 * others are found in the indexes. Throws {@link OptionError} for a pattern without a field.
 */
export function raggedImagesOf(
  { fields, location }: Pick<StoredDataset, 'fields' | 'location'>,
  { images, maxImages }: Pick<OutputRequest, 'images' | 'maxImages'>,
): RaggedImages {
  for (const pattern of images)
    if (matchingFields(fields, [pattern]).length === 0) throw noSuchImages(pattern, fields, location);
  const found = matchingFields(fields, images);
  const max = maxImages ?? found.length;
  if (max > MOST_IMAGES) {
    throw new OptionError(
      {},
      sentence`${optionName('images')} matches ${found.length} fields of ${location}, and a sample can have at most ${MOST_IMAGES} images: set ${optionName('maxImages')}, or name fewer fields.`,
    );
  }
  return { patterns: images, fields: found, max };
}

/** Largest value of the option `maxImages`: each image has its own random numbers, like a view. */
const MOST_IMAGES = 500;

/** Throws for options that need exactly one image per sample. */
export function refuseBesideImages(options: OutputRequest): void {
  const { collate, mix, customSteps, extraImages, masks, annotations, cover, views, image, transform } = options;
  const refused = {
    views: views !== undefined && 'views are made of one image per sample',
    transform: transform === 'raw' && 'for encoded images, list the fields in the option fields',
    aspectBuckets: cover !== null && 'all images of a batch have one size',
    collate: collate === 'list' && 'the images are one array, which the offsets divide',
    mix: mix !== undefined && 'samples differ in their number of images',
    customSteps: Object.values(customSteps).some((step) => step !== undefined) && 'they change one image per sample',
    extraImages: extraImages.length > 0 && 'list all images in the option images',
    masks: masks.length > 0 && 'masks belong to the image of a sample',
    annotations: annotations !== undefined && 'annotations belong to the image of a sample',
    image: image !== undefined && 'the option images lists them all',
  };
  const found = Object.entries(refused).find(([, why]) => why !== false);
  if (found === undefined) return;
  const [name, why] = found;
  throw new OptionError(
    {},
    sentence`The option ${optionName(name)} does not work with images (${why as string}): remove ${optionName(name)}, or images.`,
  );
}

function noSuchImages(pattern: string, fields: readonly string[], location: string): OptionError {
  const images = fields.filter(isNamedAsImage);
  const near = pattern.includes('*') ? '' : didYouMean(pattern, images);
  const there = images.length === 0 ? 'it has no field with the name of an image' : `its images are ${shown(images)}`;
  return new OptionError(
    {},
    sentence`${optionName('images')}: no field of ${location} matches "${pattern}"${near === '' ? ': ' : `${near} `}${there}.`,
  );
}

const SHOWN = 12;

function shown(names: readonly string[]): string {
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return `${names.slice(0, SHOWN).join(', ')}${more}`;
}
