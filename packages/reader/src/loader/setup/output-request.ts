import { codeName, OptionError, optionName, sentence, withCodeNames } from '@shardtool/base';
import type { BucketCrop } from '../../buckets/options.js';
import type { Size } from '../../codec/codec.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { type Mixes, mixesLabels, singleMixes } from '../../transform/mixes/mix-option.js';
import { entryOf, everyStep } from '../../transform/parse-steps.js';
import type { DecodeMode } from '../../transform/plan.js';
import type { CompiledTransform } from '../../transform/transform.js';
import type { CheckedOptions } from '../options.js';
import type { ExtraField } from '../ring/extra-fields.js';
import type { TransformSchedule } from './transform-schedule.js';

/** Sizes that images are resized to cover, and cropped to, before the steps of the transform. */
export interface Cover {
  readonly sizes: readonly Size[];
  readonly crop: BucketCrop;
}

/** The options that determine the content of batches. */
export type OutputRequest = {
  readonly decode: DecodeMode;
  readonly applyExifOrientation: boolean;
  readonly cover: Cover | null;
  /** The transforms of all epochs, `transform` first. */
  readonly transforms: TransformSchedule['transforms'];
} & Pick<
  CheckedOptions,
  | 'transform'
  | 'views'
  | 'draws'
  | 'collate'
  | 'mix'
  | 'labels'
  | 'customSteps'
  | 'annotations'
  | 'images'
  | 'maxImages'
  | 'extraImages'
  | 'masks'
  | 'fields'
  | 'captionSampling'
  | 'image'
  | 'maxPixels'
  | 'channels'
  | 'pixelDtype'
  | 'background'
  | 'cropIndex'
>;

/** Throws for options that change single images, because views have none. */
export function refuseBesideViews(options: OutputRequest): void {
  const { transform, collate, mix, customSteps, extraImages, masks, annotations, cover } = options;
  const refused = {
    transform: transform !== undefined && 'put its steps into views',
    schedule: options.transforms.length > 1 && 'views have their transforms in every epoch',
    aspectBuckets: cover !== null && 'each view sets its own size',
    collate: collate === 'list' && 'views are arrays of one size',
    mix: mix !== undefined && 'mix views after the loader',
    customSteps: Object.values(customSteps).some((step) => step !== undefined) && 'they change one image per sample',
    extraImages: extraImages.length > 0 && 'a second loader over the same order can deliver them',
    masks: masks.length > 0 && 'views have no masks yet',
    annotations: annotations !== undefined && 'views have no annotations yet',
  };
  const found = Object.entries(refused).find(([, why]) => why !== false);
  if (found === undefined) return;
  throw new OptionError(
    {},
    sentence`The option ${optionName(found[0])} does not work with views (${found[1]}): remove ${optionName(found[0])}, or views.`,
  );
}

export function refuseDrawsAlone({ draws, views }: OutputRequest): void {
  if (draws.length === 0 || views !== undefined) return;
  throw new OptionError(
    {},
    sentence`The option ${optionName('draws')} records what was drawn for views: add views, or remove draws.`,
  );
}

export function refuseMaxImagesAlone({ images, maxImages }: OutputRequest): void {
  if (maxImages === undefined || images.length > 0) return;
  throw new OptionError(
    {},
    sentence`The option ${optionName('maxImages')} limits the images of a sample: add ${optionName('images')}, or remove ${optionName('maxImages')}.`,
  );
}

/** Throws if a step needs boxes and none are requested. */
export function refuseBoxSteps({ steps }: CompiledTransform): void {
  const step = everyStep(steps).find((one) => entryOf(one).needsBoxes);
  if (step === undefined) return;
  throw new OptionError(
    {},
    sentence`The step ${codeName(step.name)} needs boxes: add boxes to the option ${optionName('annotations')}, or remove the step.`,
  );
}

/** Masks and annotations cannot follow every step. */
export function refuseAnnotations(option: 'masks' | 'annotations', { steps }: CompiledTransform): void {
  for (const step of everyStep(steps)) {
    const reason = entryOf(step).refusesAnnotations?.(step, option);
    if (reason === undefined) continue;
    throw new OptionError(
      {},
      sentence`The step ${codeName(step.name)} ${withCodeNames(reason)}: remove the step, or the option ${optionName(option)}.`,
    );
  }
}

export function needsPixels(option: string, { transform }: OutputRequest): OptionError {
  const other = transform === 'raw' ? "transform 'raw'" : "collate 'list'";
  return new OptionError(
    {},
    sentence`The option ${optionName(option)} is for batches whose images are decoded and stacked: remove ${optionName(option)}, or ${other}.`,
  );
}

export function checkMixable(
  given: Mixes,
  { dtype }: CompiledTransform,
  { extraFields, hasPolygons }: { readonly extraFields: readonly ExtraField[]; readonly hasPolygons: boolean },
): void {
  const mixes = singleMixes(given);
  const kinds = new Set(extraFields.map(({ kind }) => kind));
  if (mixes.some(mixesLabels) && (kinds.has('mask') || kinds.has('image'))) {
    throw new OptionError(
      {},
      sentence`mixup and cutmix of the option ${optionName('mix')} cannot mix masks and further images: remove ${optionName('masks')} and ${optionName('extraImages')}, or use a mosaic.`,
    );
  }
  if ((kinds.has('annotation') || kinds.has('columns')) && mixes.some(mayCutmix)) {
    throw new OptionError(
      {},
      sentence`cutmix of the option ${optionName('mix')} has no rule for boxes: use mixup or mosaic, or remove ${optionName('annotations')}.`,
    );
  }
  if (!hasPolygons && mixes.some(({ name }) => name === 'copyPaste')) {
    throw new OptionError(
      {},
      sentence`copyPaste of the option ${optionName('mix')} pastes objects by their polygons: add polygons to the option ${optionName('annotations')}.`,
    );
  }
  if ((dtype === 'uint16' || dtype === 'int16') && mixes.some(({ name }) => name === 'mixup' || name === 'timmMixup')) {
    throw new OptionError(
      {},
      sentence`mixup takes uint8 or float32 images, not ${dtype}: end the transform with toDtype float32.`,
    );
  }
  if (dtype === 'float16' && mixes.some(mayMixup)) {
    throw new OptionError(
      {},
      'mixup takes uint8 or float32 images: end the transform with a conversion to one of them.',
    );
  }
}

function mayMixup(mix: ReturnType<typeof singleMixes>[number]): boolean {
  return mix.name === 'mixup' || (mix.name === 'timmMixup' && mix.mixupAlpha > 0);
}

function mayCutmix(mix: ReturnType<typeof singleMixes>[number]): boolean {
  return mix.name === 'cutmix' || (mix.name === 'timmMixup' && mix.cutmixAlpha > 0);
}

/** Datasets of a mixture must have the same extra fields. */
export function checkFieldsAlike({ mixture }: StoredDataset, fields: readonly string[]): void {
  for (const field of fields) {
    const without = mixture?.datasets.find(({ dataset }) => !dataset.fields.includes(field));
    if (without === undefined) continue;
    throw new OptionError(
      {},
      sentence`${without.name} has no field "${field}", which another dataset of the mixture has: set the option ${optionName('fields')} to the fields that you need (an empty list for none). Samples without one of them get null.`,
    );
  }
}

/** The field that is the image; undefined: the first field of an image kind. */
export function nameOfImage({ image }: Pick<CheckedOptions, 'image'>): string | undefined {
  return image === false ? undefined : image;
}
