import { OptionError } from '@shardtool/base';
import { imageFields } from '@shardtool/format';
import { type CheckedAnnotations, checkAnnotations } from '../../annotations/options.js';
import { layOutRecord } from '../../annotations/record.js';
import { annotationSources, nameOfSource } from '../../annotations/sources.js';
import type { BucketCrop } from '../../buckets/options.js';
import { type CodecChoice, chooseCodec } from '../../codec/select.js';
import { checkFields, checkFieldsAndColumns } from '../../dataset/field-names.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { DecoderOptions } from '../../decode/decoder.js';
import type { Size } from '../../transform/crops.js';
import { checkMixing, type Mixing } from '../../transform/mix.js';
import { entryOf } from '../../transform/parse-steps.js';
import type { DecodeMode } from '../../transform/plan.js';
import { type CompiledTransform, compileTransform, coverTransforms } from '../../transform/transform.js';
import { valueBytes } from '../../transform/values.js';
import type { BatchOutput } from '../deliver/finished-batch.js';
import type { CheckedOptions } from '../options.js';
import type { Companion } from '../ring/companions.js';
import type { RowBytes } from '../ring/slots.js';
import { type OwnStep, type OwnSteps, resolveStep } from '../work/own-steps.js';
import { commonShape } from './common-shape.js';

/** What becomes of a sample, and of a batch. */
export interface LoaderOutput {
  readonly batch: BatchOutput;
  /** How images are decoded; null where they stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch' | 'seeds'> | null;
  /** How JPEGs are decoded and why; null where images stay encoded. */
  readonly codec: CodecChoice | null;
  /** How large photos are decoded. */
  readonly decode: DecodeMode;
  /** The field that is the image; undefined: the sample's first of an image kind. */
  readonly image: string | undefined;
  /** What comes along with each image. */
  readonly companions: readonly Companion[];
  /** Where the objects on images stand; null where they are not asked for. */
  readonly annotations: CheckedAnnotations | null;
  /** Names of the fields that come as values. */
  readonly fields: readonly string[];
  /** Of several texts in a field one is drawn. */
  readonly drawsTexts: boolean;
  /** A person's own code, its paths whole. */
  readonly steps: OwnSteps;
  readonly mixing: Mixing;
  /** Batches are worked on as a whole: by a person's own step, or to mix them. */
  readonly whole: boolean;
  /** Bytes of finished rows, by the number of a batch's size; behind the companions, of a row's objects. */
  readonly rowBytes: readonly RowBytes[];
  /**
   * Rows are made of uncompressed images and of nothing else: then workers can read just the crops, without any bytes in
   * between.
   */
  readonly isUncompressedOnly: boolean;
  /** Crop indexes are of use, where shards have them. */
  readonly usesCropIndex: boolean;
}

/** Images are resized to cover one of these sizes, and cropped to it, before the steps of the transform. */
export interface Cover {
  readonly sizes: readonly Size[];
  readonly crop: BucketCrop;
}

type OutputRequest = {
  readonly decode: DecodeMode;
  readonly applyExifOrientation: boolean;
  readonly cover: Cover | null;
} & Pick<
  CheckedOptions,
  | 'transform'
  | 'collate'
  | 'mix'
  | 'steps'
  | 'annotations'
  | 'moreImages'
  | 'masks'
  | 'fields'
  | 'textChoice'
  | 'image'
  | 'maxPixels'
  | 'cropIndex'
>;

/** Settles what batches are made of. Throws OptionError. */
export async function setUpOutput(dataset: StoredDataset, options: OutputRequest): Promise<LoaderOutput> {
  const transform = options.transform === 'raw' ? null : compileTransform(options.transform ?? []);
  const annotations =
    options.annotations === undefined ? null : checkAnnotations(options.annotations, dataset.mostObjects);
  if (transform !== null && annotations?.boxes === undefined) refuseBoxSteps(transform);
  const { batch, decoder } = await outputOf(dataset, transform, options);
  const mixing = checkMixing(options.mix);
  const steps = stepsOf(options.steps);
  const companions = companionsOf(options, batch);
  if (annotations !== null) companions.push(...annotated(annotations, batch, dataset));
  checkFields('image', options.image === undefined ? [] : [options.image], dataset);
  checkFields('moreImages', options.moreImages, dataset);
  checkFields('masks', options.masks, dataset);
  if (annotations !== null) await checkFieldsAndColumns('annotations', sourceNames(annotations), dataset);
  if (options.fields !== undefined) await checkFieldsAndColumns('fields', options.fields, dataset);
  const fields = options.fields ?? fieldsOf(dataset, companions);
  if (options.fields === undefined) checkFieldsAlike(dataset, fields);
  if (steps.fields !== undefined) companions.push(...fields.map((field) => ({ field, kind: 'field' as const })));
  const hasSteps = Object.keys(steps).length > 0;
  if (batch.kind !== 'pixels' && (hasSteps || mixing.length > 0))
    throw needsPixels(hasSteps ? 'steps' : 'mix', options);
  if (mixing.length > 0) checkMixable(mixing, transform!, companions);
  const objectBytes = annotations === null ? [] : [layOutRecord(annotations).bytes];
  const withObjects = ({ image, companions }: RowBytes) => ({ image, companions: [...companions, ...objectBytes] });
  const codec = decoder === null ? null : await chooseCodec();
  return {
    batch,
    // Where a worker cannot open the same codec it ends with an error: others differ by some levels.
    decoder: codec && { ...decoder!, codec: codec.name },
    codec,
    decode: options.decode,
    image: options.image,
    companions,
    annotations,
    fields,
    drawsTexts: options.textChoice === 'random',
    steps,
    mixing,
    whole: mixing.length > 0 || steps.batch !== undefined,
    rowBytes: rowBytesOf(batch, companions).map(withObjects),
    isUncompressedOnly: isUncompressedOnly(dataset, batch, options, companions.length + fields.length),
    usesCropIndex: options.cropIndex !== false && codec?.name === 'turbojpeg',
  };
}

/** More images and masks, where the batch has a place for them. */
function companionsOf(options: OutputRequest, output: BatchOutput): Companion[] {
  const { moreImages, masks } = options;
  const companions: Companion[] = [
    ...moreImages.map((field) => ({ field, kind: 'image' as const })),
    ...masks.map((field) => ({ field, kind: 'mask' as const })),
  ];
  const twice = companions.find(({ field }, i) => companions.findIndex((other) => other.field === field) < i);
  if (twice !== undefined)
    throw new OptionError({}, `The field "${twice.field}" is named twice in moreImages and masks.`);
  if (companions.length === 0 || output.kind === 'pixels') return companions;
  throw needsPixels(masks.length > 0 ? 'masks' : 'moreImages', options);
}

/** Fields and columns that have the objects. */
function sourceNames(annotations: CheckedAnnotations): string[] {
  return annotationSources(annotations).flatMap(({ field, columns = [] }) => [
    ...(field === undefined ? [] : [field]),
    ...columns,
  ]);
}

/** The fields and columns that have the objects, where images are decoded. */
function annotated(annotations: CheckedAnnotations, output: BatchOutput, { fields }: StoredDataset): Companion[] {
  if (output.kind === 'raw') {
    throw new OptionError(
      {},
      "What lies on images moves as they are decoded: leave out annotations, or transform 'raw'.",
    );
  }
  const byName = new Map<string, Companion>();
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

/** Steps that go by boxes need some. */
function refuseBoxSteps({ steps }: CompiledTransform): void {
  const step = steps.find((step) => entryOf(step).needsBoxes);
  if (step === undefined) return;
  throw new OptionError(
    {},
    `The step ${step.name} goes by boxes: say with the option annotations where they stand, or leave it out.`,
  );
}

function needsPixels(option: string, { transform }: OutputRequest): OptionError {
  const other = transform === 'raw' ? "transform 'raw'" : "collate 'list'";
  return new OptionError(
    {},
    `The option ${option} is for batches whose images are decoded and stacked: leave out ${option}, or ${other}.`,
  );
}

/** The steps that there are, with whole paths. */
function stepsOf(steps: OutputRequest['steps']): OwnSteps {
  const resolved = Object.entries(steps).flatMap(([name, step]) =>
    step === undefined ? [] : [[name, resolveStep(step as OwnStep)] as const],
  );
  return Object.fromEntries(resolved);
}

function checkMixable(mixing: Mixing, { dtype }: CompiledTransform, companions: readonly Companion[]): void {
  if (companions.some(({ kind }) => kind !== 'field')) {
    throw new OptionError({}, 'mix takes images and labels: leave out moreImages, masks and annotations, or mix.');
  }
  if (dtype === 'float16' && mixing.some(({ name }) => name === 'mixup')) {
    throw new OptionError({}, 'mixup takes uint8 or float32 images: let the transform end with one of them.');
  }
}

/** The fields that come as values, unless others are asked for. */
function fieldsOf(dataset: StoredDataset, companions: readonly Companion[]): string[] {
  const pixels = new Set([...imageFields(dataset.fields), ...companions.map(({ field }) => field), 'cls']);
  return dataset.fields.filter((field) => !pixels.has(field));
}

/** Datasets of a mixture must agree on what comes along with the images. */
function checkFieldsAlike({ mixture }: StoredDataset, fields: readonly string[]): void {
  for (const field of fields) {
    const without = mixture?.datasets.find(({ dataset }) => !dataset.fields.includes(field));
    if (without === undefined) continue;
    throw new OptionError(
      {},
      `${without.name} has no field "${field}", which another dataset of the mixture has: name the fields that you want with ` +
        'the option fields (an empty list for none); samples that lack one have null there.',
    );
  }
}

function isUncompressedOnly(
  dataset: StoredDataset,
  output: BatchOutput,
  options: OutputRequest,
  others: number,
): boolean {
  const { image, steps } = options;
  const images = image === undefined ? imageFields(dataset.fields) : [image];
  const isPlain = output.kind === 'pixels' && steps.fields === undefined && steps.pixels === undefined && others === 0;
  const areFiles = dataset.shards.every(({ open }) => open === undefined);
  return isPlain && areFiles && images.length === 1 && images[0] === 'npy';
}

async function outputOf(
  dataset: StoredDataset,
  transform: CompiledTransform | null,
  options: OutputRequest,
): Promise<Pick<LoaderOutput, 'batch' | 'decoder'>> {
  const { cover } = options;
  if (cover !== null && (transform === null || options.collate === 'list')) throw needsPixels('buckets', options);
  if (transform === null) return { batch: { kind: 'raw' }, decoder: null };
  const decoder = {
    transform,
    maxPixels: options.maxPixels,
    applyExifOrientation: options.applyExifOrientation,
    decode: options.decode,
  };
  if (options.collate === 'list') return { batch: { kind: 'list' }, decoder };
  const { dtype, layout } = transform;
  if (cover !== null) {
    const covers = coverTransforms(transform, cover.sizes, cover.crop);
    return { batch: { kind: 'pixels', sizes: cover.sizes, dtype, layout }, decoder: { ...decoder, covers } };
  }
  const size = transform.outputShape ?? (await commonShape(dataset, transform, options));
  return { batch: { kind: 'pixels', sizes: [size], dtype, layout }, decoder: { ...decoder, outputSize: size } };
}

/** By the number of a batch's size. Encoded images, and those of a list, lie elsewhere. */
function rowBytesOf(output: BatchOutput, companions: readonly Companion[]): RowBytes[] {
  if (output.kind !== 'pixels') return [{ image: 0, companions: companions.map(() => 0) }];
  return output.sizes.map(({ width, height }) => {
    const image = width * height * 3 * valueBytes(output.dtype);
    const bytesOf = { image, mask: width * height, field: 0, annotation: 0, columns: 0 };
    return { image, companions: companions.map(({ kind }) => bytesOf[kind]) };
  });
}
