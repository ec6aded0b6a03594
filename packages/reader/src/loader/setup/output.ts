import { OptionError, optionName, sentence } from '@shardtool/base';
import { imageFields } from '@shardtool/format';
import { type CheckedAnnotations, checkAnnotations } from '../../annotations/options.js';
import { layOutRecord } from '../../annotations/record.js';
import { annotationSources, nameOfSource } from '../../annotations/sources.js';
import type { BucketCrop } from '../../buckets/options.js';
import type { Size } from '../../codec/codec.js';
import { formatOf, type PixelFormat } from '../../codec/pixel-format.js';
import { type CodecChoice, chooseCodec } from '../../codec/select.js';
import { checkFields, checkFieldsAndColumns } from '../../dataset/field-names.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { DecoderOptions } from '../../decode/decoder.js';
import { checkDrawnNames } from '../../transform/drawn-steps.js';
import { checkMix, type Mixes } from '../../transform/mix.js';
import { entryOf, everyStep } from '../../transform/parse-steps.js';
import type { DecodeMode } from '../../transform/plan.js';
import {
  type CompiledTransform,
  compileTransform,
  coverTransforms,
  type TransformInput,
} from '../../transform/transform.js';
import { valueBytes } from '../../transform/values.js';
import { checkViews, type ViewsInput } from '../../views/options.js';
import { type ViewLayout, viewPartBytes } from '../../views/slot-layout.js';
import type { BatchOutput } from '../deliver/finished-batch.js';
import { checkLabels, type LabelSource } from '../deliver/label-values.js';
import type { CheckedOptions } from '../options.js';
import type { ExtraField } from '../ring/extra-fields.js';
import type { RowBytes } from '../ring/slots.js';
import { type CustomStep, type CustomSteps, resolveStep } from '../work/custom-steps.js';
import { commonShape } from './common-shape.js';
import { checkMixtureFormats } from './mixture-formats.js';
import type { TransformSchedule } from './transform-schedule.js';

/** How samples and batches are processed. */
export interface LoaderOutput {
  readonly batch: BatchOutput;
  /** The format to which images are decoded. */
  readonly format: PixelFormat;
  /** How images are decoded. Null if they stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch' | 'seeds'> | null;
  /** How JPEGs are decoded and why. Null if images stay encoded. */
  readonly codec: CodecChoice | null;
  /** How large photos are decoded. */
  readonly decode: DecodeMode;
  /** The field that is the image. Undefined: the first field of an image kind. */
  readonly image: string | undefined;
  /** Fields that are delivered with each image. */
  readonly extraFields: readonly ExtraField[];
  /** Sources of annotations. Null if they are not requested. */
  readonly annotations: CheckedAnnotations | null;
  /** Names of the fields that are delivered as values. */
  readonly fields: readonly string[];
  /** Whether one of several texts in a field is chosen at random. */
  readonly drawsTexts: boolean;
  /** Custom steps, with absolute paths. */
  readonly steps: CustomSteps;
  readonly mixes: Mixes;
  /** Source of labels that are not class numbers. */
  readonly labels: LabelSource | null;
  /** True if batches are processed as a whole: by a custom step, or to mix them. */
  readonly whole: boolean;
  /** Bytes of finished rows for each batch size. The annotations of a row follow the extra fields. */
  readonly rowBytes: readonly RowBytes[];
  /** Whether rows consist only of uncompressed images. Workers can then read the crops directly. */
  readonly isUncompressedOnly: boolean;
  /** True if crop indexes can be used. */
  readonly usesCropIndex: boolean;
}

/** Sizes that images are resized to cover, and cropped to, before the steps of the transform. */
export interface Cover {
  readonly sizes: readonly Size[];
  readonly crop: BucketCrop;
}

type OutputRequest = {
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

/** Determines the content of batches. Throws OptionError. */
export async function setUpOutput(dataset: StoredDataset, options: OutputRequest): Promise<LoaderOutput> {
  refuseDrawsAlone(options);
  if (options.views !== undefined) refuseBesideViews(options);
  const format = formatOf(options);
  const transform = options.transform === 'raw' ? null : compileTransform(options.transform ?? [], format);
  const annotations =
    options.annotations === undefined ? null : checkAnnotations(options.annotations, dataset.mostObjects);
  if (annotations?.boxes === undefined) {
    for (const one of options.transforms)
      if (one !== undefined && one !== 'raw') refuseBoxSteps(compileTransform(one, format));
  }
  if (transform !== null && annotations !== null) refuseAnnotations('annotations', transform);
  if (transform !== null && options.masks.length > 0) refuseAnnotations('masks', transform);
  if (transform !== null || options.views !== undefined) await checkMixtureFormats(dataset, format, options.image);
  const { batch, decoder } = await outputOf(dataset, transform, options, format);
  const mixes = checkMix(options.mix);
  const steps = stepsOf(options.customSteps);
  const extraFields = extraFieldsOf(options, batch);
  if (annotations !== null) extraFields.push(...annotated(annotations, batch, dataset));
  checkFields('image', options.image === undefined ? [] : [options.image], dataset);
  checkFields('extraImages', options.extraImages, dataset);
  checkFields('masks', options.masks, dataset);
  if (annotations !== null) await checkFieldsAndColumns('annotations', sourceNames(annotations), dataset);
  if (options.fields !== undefined) await checkFieldsAndColumns('fields', options.fields, dataset);
  const labels = options.labels === undefined ? null : checkLabels(options.labels);
  if (labels !== null) await checkFieldsAndColumns('labels', [labels.field], dataset);
  if (labels !== null && mixes.length > 0)
    throw new OptionError(
      {},
      sentence`The option ${optionName('mix')} mixes class numbers: remove labels, or mix in your own code.`,
    );
  const named = options.fields ?? fieldsOf(dataset, extraFields);
  const fields = labels === null || named.includes(labels.field) ? named : [...named, labels.field];
  if (options.fields === undefined) checkFieldsAlike(dataset, fields);
  if (steps.fields !== undefined) extraFields.push(...fields.map((field) => ({ field, kind: 'field' as const })));
  const hasSteps = Object.keys(steps).length > 0;
  if (batch.kind !== 'pixels' && (hasSteps || mixes.length > 0))
    throw needsPixels(hasSteps ? 'customSteps' : 'mix', options);
  if (mixes.length > 0) checkMixable(mixes, transform!, extraFields);
  const objectBytes = annotations === null ? [] : [layOutRecord(annotations).bytes];
  const withObjects = ({ image, extraFields }: RowBytes) => ({ image, extraFields: [...extraFields, ...objectBytes] });
  const views = batch.kind === 'pixels' ? batch.views : null;
  const codec = decoder === null ? null : await chooseCodec(format);
  return {
    batch,
    format,
    // If a worker cannot open the same codec, it ends with an error, because the pixels of other codecs differ by some
    // levels.
    decoder: codec && { ...decoder!, codec: codec.name },
    codec,
    decode: options.decode,
    image: options.image,
    extraFields,
    annotations,
    fields,
    drawsTexts: options.captionSampling === 'random',
    steps,
    mixes,
    labels,
    whole: mixes.length > 0 || steps.batch !== undefined,
    rowBytes:
      views === null
        ? rowBytesOf(batch, extraFields, options.transforms.length).map(withObjects)
        : [rowBytesOfViews(views, extraFields)],
    isUncompressedOnly: isUncompressedOnly(dataset, batch, options, extraFields.length + fields.length),
    usesCropIndex: options.cropIndex !== false && codec?.name === 'turbojpeg',
  };
}

/** Throws for options that change single images, because views have none. */
function refuseBesideViews(options: OutputRequest): void {
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

function refuseDrawsAlone({ draws, views }: OutputRequest): void {
  if (draws.length === 0 || views !== undefined) return;
  throw new OptionError(
    {},
    sentence`The option ${optionName('draws')} records what was drawn for views: add views, or remove draws.`,
  );
}

/** Returns extra images and masks, if the batch has room for them. */
function extraFieldsOf(options: OutputRequest, output: BatchOutput): ExtraField[] {
  const { extraImages, masks } = options;
  const extraFields: ExtraField[] = [
    ...extraImages.map((field) => ({ field, kind: 'image' as const })),
    ...masks.map((field) => ({ field, kind: 'mask' as const })),
  ];
  const twice = extraFields.find(({ field }, i) => extraFields.findIndex((other) => other.field === field) < i);
  if (twice !== undefined)
    throw new OptionError(
      {},
      sentence`The field "${twice.field}" is named twice in ${optionName('extraImages')} and masks.`,
    );
  if (extraFields.length === 0 || output.kind === 'pixels') return extraFields;
  throw needsPixels(masks.length > 0 ? 'masks' : 'extraImages', options);
}

/** Fields and columns that have the objects. */
function sourceNames(annotations: CheckedAnnotations): string[] {
  return annotationSources(annotations).flatMap(({ field, columns = [] }) => [
    ...(field === undefined ? [] : [field]),
    ...columns,
  ]);
}

/** Returns the fields and columns with annotations, if images are decoded. */
function annotated(annotations: CheckedAnnotations, output: BatchOutput, { fields }: StoredDataset): ExtraField[] {
  if (output.kind === 'raw') {
    throw new OptionError({}, "Annotations need decoded images: remove annotations, or transform 'raw'.");
  }
  const byName = new Map<string, ExtraField>();
  for (const source of annotationSources(annotations)) {
    const name = nameOfSource(source);
    const isField = source.field !== undefined && fields.includes(source.field);
    byName.set(
      name,
      isField
        ? { field: name, kind: 'annotation' }
        : { field: name, kind: 'columns', columns: source.columns ?? source.field },
    );
  }
  return [...byName.values()];
}

/** Throws if a step needs boxes and none are requested. */
function refuseBoxSteps({ steps }: CompiledTransform): void {
  const step = everyStep(steps).find((one) => entryOf(one).needsBoxes);
  if (step === undefined) return;
  throw new OptionError(
    {},
    sentence`The step ${step.name} needs boxes: add boxes to the option ${optionName('annotations')}, or remove the step.`,
  );
}

/** Masks and annotations cannot follow every step. */
function refuseAnnotations(option: 'masks' | 'annotations', { steps }: CompiledTransform): void {
  for (const step of everyStep(steps)) {
    const reason = entryOf(step).refusesAnnotations?.(step, option);
    if (reason === undefined) continue;
    throw new OptionError(
      {},
      sentence`The step ${step.name} ${reason}: remove the step, or the option ${optionName(option)}.`,
    );
  }
}

function needsPixels(option: string, { transform }: OutputRequest): OptionError {
  const other = transform === 'raw' ? "transform 'raw'" : "collate 'list'";
  return new OptionError(
    {},
    sentence`The option ${optionName(option)} is for batches whose images are decoded and stacked: remove ${optionName(option)}, or ${other}.`,
  );
}

/** The custom steps, with absolute paths. */
function stepsOf(steps: OutputRequest['customSteps']): CustomSteps {
  const resolved = Object.entries(steps).flatMap(([name, step]) =>
    step === undefined ? [] : [[name, resolveStep(step as CustomStep)] as const],
  );
  return Object.fromEntries(resolved);
}

function checkMixable(mixes: Mixes, { dtype }: CompiledTransform, extraFields: readonly ExtraField[]): void {
  if (extraFields.some(({ kind }) => kind !== 'field')) {
    throw new OptionError(
      {},
      sentence`${optionName('mix')} combines only images and labels: remove ${optionName('extraImages')}, masks and annotations, or mix.`,
    );
  }
  if ((dtype === 'uint16' || dtype === 'int16') && mixes.some(({ name }) => name !== 'cutmix')) {
    throw new OptionError(
      {},
      `mixup takes uint8 or float32 images, not ${dtype}: let the transform end with toDtype float32.`,
    );
  }
  if (dtype === 'float16' && mixes.some(({ name }) => name === 'mixup')) {
    throw new OptionError({}, 'mixup takes uint8 or float32 images: let the transform end with one of them.');
  }
}

/** The fields that are delivered as values by default. */
function fieldsOf(dataset: StoredDataset, extraFields: readonly ExtraField[]): string[] {
  const pixels = new Set([...imageFields(dataset.fields), ...extraFields.map(({ field }) => field), 'cls']);
  return dataset.fields.filter((field) => !pixels.has(field));
}

/** Datasets of a mixture must have the same extra fields. */
function checkFieldsAlike({ mixture }: StoredDataset, fields: readonly string[]): void {
  for (const field of fields) {
    const without = mixture?.datasets.find(({ dataset }) => !dataset.fields.includes(field));
    if (without === undefined) continue;
    throw new OptionError(
      {},
      sentence`${without.name} has no field "${field}", which another dataset of the mixture has: set the option ${optionName('fields')} to the fields that you need (an empty list for none). Samples without one of them get null.`,
    );
  }
}

function isUncompressedOnly(
  dataset: StoredDataset,
  output: BatchOutput,
  options: OutputRequest,
  others: number,
): boolean {
  const { image, customSteps } = options;
  const images = image === undefined ? imageFields(dataset.fields) : [image];
  const isPlain =
    output.kind === 'pixels' &&
    output.views === null &&
    customSteps.fields === undefined &&
    customSteps.pixels === undefined &&
    others === 0;
  const areFiles = dataset.shards.every(({ open }) => open === undefined);
  return isPlain && areFiles && images.length === 1 && images[0] === 'npy';
}

async function outputOf(
  dataset: StoredDataset,
  transform: CompiledTransform | null,
  options: OutputRequest,
  format: PixelFormat,
): Promise<Pick<LoaderOutput, 'batch' | 'decoder'>> {
  const { cover } = options;
  if (options.views !== undefined) return outputOfViews(options.views, options, format);
  if (cover !== null && (transform === null || options.collate === 'list')) throw needsPixels('aspectBuckets', options);
  if (options.transforms.length > 1) return outputOfSchedule(options, format);
  if (transform === null) return { batch: { kind: 'raw' }, decoder: null };
  const decoder = {
    transform,
    maxPixels: options.maxPixels,
    applyExifOrientation: options.applyExifOrientation,
    decode: options.decode,
  };
  if (options.collate === 'list') return { batch: { kind: 'list' }, decoder };
  const { dtype, layout } = transform;
  const { channels } = format;
  if (cover !== null) {
    const covers = coverTransforms(transform, cover.sizes, cover.crop);
    return {
      batch: { kind: 'pixels', sizes: cover.sizes, channels, dtype, layout, views: null },
      decoder: { ...decoder, covers, showsParts: true },
    };
  }
  const size = transform.outputShape ?? (await commonShape(dataset, transform, options));
  return {
    batch: { kind: 'pixels', sizes: [size], channels, dtype, layout, views: null },
    decoder: { ...decoder, outputSize: size },
  };
}

/** The images of each transform, by its index. */
function outputOfSchedule(options: OutputRequest, format: PixelFormat): Pick<LoaderOutput, 'batch' | 'decoder'> {
  const { transforms, collate, maxPixels, applyExifOrientation, decode } = options;
  if (options.cover !== null) {
    throw new OptionError(
      {},
      sentence`${optionName('aspectBuckets')} and a transform for some epochs both set the size of images: remove one of them.`,
    );
  }
  if (transforms.includes('raw')) {
    throw new OptionError(
      {},
      "With transform 'raw' images stay encoded in every epoch: remove schedule, or give transform steps.",
    );
  }
  const covers = transforms.map((transform) => compileTransform((transform ?? []) as TransformInput, format));
  const [first, ...others] = covers as [CompiledTransform, ...CompiledTransform[]];
  const other = others.find(({ dtype, layout }) => dtype !== first.dtype || layout !== first.layout);
  if (other !== undefined) {
    throw new OptionError(
      {},
      `The transforms of all epochs must produce one dtype and layout, but one produces ${first.dtype} ${first.layout} and another ${other.dtype} ` +
        `${other.layout}: end them with the same toDtype, normalize and layout.`,
    );
  }
  const { dtype, layout } = first;
  const decoder = { transform: first, covers, maxPixels, applyExifOrientation, decode };
  if (collate === 'list') return { batch: { kind: 'list' }, decoder };
  const sizes = covers.map(({ outputShape }) => {
    if (outputShape !== null) return outputShape;
    throw new OptionError(
      {},
      'A transform for some epochs must give all images the same size: end it with a step that has a size, such as centerCrop.',
    );
  });
  const { channels } = format;
  return { batch: { kind: 'pixels', sizes, channels, dtype, layout, views: null }, decoder };
}

/** Images are the first view; see {@link ViewLayout}. */
function outputOfViews(
  given: ViewsInput,
  options: OutputRequest,
  format: PixelFormat,
): Pick<LoaderOutput, 'batch' | 'decoder'> {
  const { maxPixels, applyExifOrientation, decode } = options;
  const views = checkViews(given, format);
  const draws = checkDrawnNames(options.draws);
  const steps = new Set(views.transforms.flatMap(({ steps: own }) => everyStep(own).map(({ name }) => name)));
  const missing = draws.find((name) => !steps.has(name));
  if (missing !== undefined) {
    throw new OptionError(
      {},
      `draws names the step "${missing}", which no view has: add it to a view, or remove it from draws.`,
    );
  }
  const { size, dtype, layout } = views.groups[0];
  return {
    batch: {
      kind: 'pixels',
      sizes: [size],
      channels: format.channels,
      dtype,
      layout,
      views: { ...views, draws, firstPart: 0 },
    },
    decoder: {
      transform: views.transforms[0]!,
      views: { transforms: views.transforms, draws },
      maxPixels,
      applyExifOrientation,
      decode,
    },
  };
}

function rowBytesOfViews(views: ViewLayout, extraFields: readonly ExtraField[]): RowBytes {
  const { image, extraParts } = viewPartBytes(views, views.draws);
  return { image, extraFields: [...extraFields.map(() => 0), ...extraParts] };
}

/** Row sizes for each batch size. Encoded images, and images in a list, are stored elsewhere. */
function rowBytesOf(output: BatchOutput, extraFields: readonly ExtraField[], transforms: number): RowBytes[] {
  if (output.kind !== 'pixels')
    return new Array<RowBytes>(transforms).fill({ image: 0, extraFields: extraFields.map(() => 0) });
  return output.sizes.map(({ width, height }) => {
    const image = width * height * output.channels * valueBytes(output.dtype);
    const bytesOf = { image, mask: width * height, field: 0, annotation: 0, columns: 0 };
    return { image, extraFields: extraFields.map(({ kind }) => bytesOf[kind]) };
  });
}
