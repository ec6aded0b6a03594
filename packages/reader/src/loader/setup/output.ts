import { OptionError, optionName, sentence } from '@shardtool/base';
import { imageFields } from '@shardtool/format';
import { type CheckedAnnotations, checkAnnotations } from '../../annotations/options.js';
import { layOutRecord } from '../../annotations/record.js';
import { annotationSources, nameOfSource } from '../../annotations/sources.js';
import { formatOf, type PixelFormat } from '../../codec/pixel-format.js';
import { type CodecChoice, chooseCodec } from '../../codec/select.js';
import { checkFields, checkFieldsAndColumns } from '../../dataset/fields/field-names.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { checkMix, imagesPerRow, type Mixes, mixesLabels, singleMixes } from '../../transform/mixes/mix-option.js';
import type { DecodeMode } from '../../transform/plan.js';
import { compileTransform } from '../../transform/transform.js';
import type { ExtraField } from '../ring/extra-fields.js';
import type { RowBytes } from '../ring/slots.js';
import { checkLabels, type LabelSource } from '../setup/labels-option.js';
import type { BatchOutput } from './batch-output.js';
import { type CustomStep, type ResolvedSteps, resolveStep } from './custom-steps.js';
import { type DecoderOutput, decoderOutputOf, rowBytesOf, rowBytesOfViews } from './decoder-output.js';
import { outputOfFields } from './fields-output.js';
import { hasImages } from './image-choice.js';
import { checkMixtureFormats } from './mixture-formats.js';
import {
  checkFieldsAlike,
  checkMixable,
  nameOfImage,
  needsPixels,
  type OutputRequest,
  refuseAnnotations,
  refuseBesideViews,
  refuseBoxSteps,
  refuseDrawsAlone,
  refuseMaxImagesAlone,
} from './output-request.js';
import { type RaggedImages, raggedImagesOf, refuseBesideImages } from './ragged-images.js';

/** How samples and batches are processed. */
export interface LoaderOutput extends DecoderOutput {
  /** The format to which images are decoded. */
  readonly format: PixelFormat;
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
  readonly steps: ResolvedSteps;
  readonly mixes: Mixes;
  /** Source of labels that are not class numbers. */
  readonly labels: LabelSource | null;
  /** True if batches are processed as a whole: by a custom step, or to mix them. */
  readonly whole: boolean;
  /** Bytes of finished rows for each batch size. The annotations of a row follow the extra fields. */
  readonly rowBytes: readonly RowBytes[];
  /** Whether rows consist of nothing but an image that is decoded, so that no other thread needs its bytes. */
  readonly isImageOnly: boolean;
  /** Whether rows consist only of uncompressed images. Workers can then read the crops directly. */
  readonly isUncompressedOnly: boolean;
  /** True if crop indexes can be used. */
  readonly usesCropIndex: boolean;
}

/** Determines the content of batches. Throws OptionError. */
export async function setUpOutput(dataset: StoredDataset, options: OutputRequest): Promise<LoaderOutput> {
  if (!(await hasImages(dataset, options))) return outputOfFields(dataset, options);
  refuseDrawsAlone(options);
  refuseMaxImagesAlone(options);
  if (options.images.length > 0) refuseBesideImages(options);
  if (options.views !== undefined) refuseBesideViews(options);
  const format = formatOf(options);
  const images = options.images.length === 0 ? null : raggedImagesOf(dataset, options);
  const image = images?.fields[0] ?? nameOfImage(options);
  const transform = options.transform === 'raw' ? null : compileTransform(options.transform ?? [], format);
  const mixes = checkMix(options.mix);
  const annotations =
    options.annotations === undefined
      ? null
      : {
          ...checkAnnotations(options.annotations, dataset.mostObjects),
          imagesPerRow: imagesPerRow(mixes),
        };
  if (annotations?.boxes === undefined) {
    for (const one of options.transforms)
      if (one !== undefined && one !== 'raw') refuseBoxSteps(compileTransform(one, format));
  }
  if (transform !== null && annotations !== null) refuseAnnotations('annotations', transform);
  if (transform !== null && options.masks.length > 0) refuseAnnotations('masks', transform);
  if (transform !== null || options.views !== undefined) await checkMixtureFormats(dataset, format, image);
  const { batch, decoder } = await decoderOutputOf(dataset, transform, { ...options, image, ragged: images }, format);
  const steps = stepsOf(options.customSteps);
  const extraFields = extraFieldsOf(options, batch);
  if (annotations !== null) extraFields.push(...annotated(annotations, batch, dataset));
  checkFields('image', image === undefined ? [] : [image], dataset);
  checkFields('extraImages', options.extraImages, dataset);
  checkFields('masks', options.masks, dataset);
  if (annotations !== null) await checkFieldsAndColumns('annotations', sourceNames(annotations), dataset);
  if (options.fields !== undefined) await checkFieldsAndColumns('fields', options.fields, dataset);
  const labels = options.labels === undefined ? null : checkLabels(options.labels);
  if (labels !== null) await checkFieldsAndColumns('labels', [labels.field], dataset);
  if (labels !== null && singleMixes(mixes).some(mixesLabels))
    throw new OptionError(
      {},
      sentence`The option ${optionName('mix')} mixes class numbers: remove labels, or mix in your own code.`,
    );
  const named = options.fields ?? fieldsOf(dataset, extraFields, images);
  const fields = labels === null || named.includes(labels.field) ? named : [...named, labels.field];
  if (options.fields === undefined) checkFieldsAlike(dataset, fields);
  if (steps.fields !== undefined) extraFields.push(...fields.map((field) => ({ field, kind: 'field' as const })));
  const hasSteps = Object.keys(steps).length > 0;
  if (batch.kind !== 'pixels' && (hasSteps || mixes.length > 0))
    throw needsPixels(hasSteps ? 'customSteps' : 'mix', options);
  if (mixes.length > 0)
    checkMixable(mixes, transform!, { extraFields, hasPolygons: annotations?.polygons !== undefined });
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
    image,
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
    isImageOnly: images === null && batch.kind !== 'raw' && extraFields.length + fields.length === 0,
    isUncompressedOnly: isUncompressedOnly(dataset, batch, options, extraFields.length + fields.length),
    // Crop indexes are those of the image of a sample.
    usesCropIndex: images === null && options.cropIndex !== false && codec?.name === 'turbojpeg',
  };
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

/** The custom steps, with absolute paths. */
function stepsOf(steps: OutputRequest['customSteps']): ResolvedSteps {
  const resolved = Object.entries(steps).flatMap(([name, step]) =>
    step === undefined ? [] : [[name, resolveStep(step as CustomStep)] as const],
  );
  return Object.fromEntries(resolved);
}

/** The fields that are delivered as values by default. */
function fieldsOf(dataset: StoredDataset, extraFields: readonly ExtraField[], images: RaggedImages | null): string[] {
  const pixels = new Set([
    ...imageFields(dataset.fields),
    ...(images?.fields ?? []),
    ...extraFields.map(({ field }) => field),
    'cls',
  ]);
  return dataset.fields.filter((field) => !pixels.has(field));
}

function isUncompressedOnly(
  dataset: StoredDataset,
  output: BatchOutput,
  options: OutputRequest,
  others: number,
): boolean {
  const { customSteps } = options;
  const image = nameOfImage(options);
  const images = image === undefined ? imageFields(dataset.fields) : [image];
  const isPlain =
    output.kind === 'pixels' &&
    output.views === null &&
    output.ragged === null &&
    customSteps.fields === undefined &&
    customSteps.pixels === undefined &&
    others === 0;
  const areFiles = dataset.shards.every(({ open }) => open === undefined);
  return isPlain && areFiles && images.length === 1 && images[0] === 'npy';
}
