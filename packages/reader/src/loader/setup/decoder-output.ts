import { OptionError, optionName, sentence } from '@shardtool/base';
import { npyRowBytes } from '@shardtool/format';
import type { Size } from '../../codec/codec.js';
import type { PixelFormat } from '../../codec/pixel-format.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { DecoderOptions } from '../../decode/decoder.js';
import { checkDrawnNames } from '../../transform/drawn-steps.js';
import { everyStep } from '../../transform/parse-steps.js';
import {
  type CompiledTransform,
  compileTransform,
  coverTransforms,
  type TransformInput,
} from '../../transform/transform.js';
import { valueBytes } from '../../transform/values.js';
import { checkViews, type ViewsInput } from '../../views/options.js';
import { type ViewLayout, viewPartBytes } from '../../views/slot-layout.js';
import type { ExtraField } from '../ring/extra-fields.js';
import type { RowBytes } from '../ring/slots.js';
import type { BatchOutput } from './batch-output.js';
import { commonShape } from './common-shape.js';
import { nameOfImage, needsPixels, type OutputRequest } from './output-request.js';
import type { RaggedImages } from './ragged-images.js';

/** The arrays of batches, and how they are decoded. */
export interface DecoderOutput {
  readonly batch: BatchOutput;
  /** How images are decoded. Null if they stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch' | 'seeds'> | null;
}

/** The options that determine the arrays of batches. */
type DecoderRequest = OutputRequest & {
  /** Null if each sample has one image. */
  readonly ragged: RaggedImages | null;
};

/** Determines the arrays of batches. Throws OptionError. */
export async function decoderOutputOf(
  dataset: StoredDataset,
  transform: CompiledTransform | null,
  options: DecoderRequest,
  format: PixelFormat,
): Promise<DecoderOutput> {
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
      batch: { kind: 'pixels', sizes: cover.sizes, channels, dtype, layout, views: null, ragged: null },
      decoder: { ...decoder, covers, showsParts: true },
    };
  }
  const size =
    transform.outputShape ?? (await commonShape(dataset, transform, { ...options, image: nameOfImage(options) }));
  return {
    batch: { kind: 'pixels', sizes: [size], channels, dtype, layout, views: null, ragged: options.ragged },
    decoder: { ...decoder, outputSize: size },
  };
}

/** The images of each transform, by its index. */
function outputOfSchedule(options: DecoderRequest, format: PixelFormat): DecoderOutput {
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
      sentence`The transforms of all epochs must produce one dtype and layout, but one produces ${first.dtype} ${first.layout} and another ${other.dtype} ${other.layout}: end them with the same toDtype, normalize and layout.`,
    );
  }
  const { dtype, layout } = first;
  const decoder = { transform: first, covers, maxPixels, applyExifOrientation, decode };
  if (collate === 'list') return { batch: { kind: 'list' }, decoder };
  const sizes = covers.map(({ outputShape }) => {
    if (outputShape !== null) return outputShape;
    throw new OptionError(
      {},
      sentence`A transform for some epochs must give all images the same size: end it with a step that has a size, such as centerCrop.`,
    );
  });
  const { channels } = format;
  return { batch: { kind: 'pixels', sizes, channels, dtype, layout, views: null, ragged: options.ragged }, decoder };
}

/** The images are those of the first view; see {@link ViewLayout}. */
function outputOfViews(given: ViewsInput, options: OutputRequest, format: PixelFormat): DecoderOutput {
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
      ragged: null,
    },
    decoder: {
      transform: views.transforms[0]!,
      views: { transforms: views.transforms, randomOf: views.randomOf, draws },
      maxPixels,
      applyExifOrientation,
      decode,
    },
  };
}

export function rowBytesOfViews(views: ViewLayout, extraFields: readonly ExtraField[]): RowBytes {
  const { image, extraParts } = viewPartBytes(views, views.draws);
  return { image, extraFields: [...extraFields.map(() => 0), ...extraParts] };
}

/** Bytes of a finished image. */
export function imageBytesOf(
  { channels, dtype }: Pick<Extract<BatchOutput, { kind: 'pixels' }>, 'channels' | 'dtype'>,
  { width, height }: Size,
): number {
  return width * height * channels * valueBytes(dtype);
}

/** Where the images of a batch are, if samples have several images (option `images`). */
export interface RaggedRows {
  /** Largest number of images of a sample. */
  readonly max: number;
  /** Bytes of an image for each batch size. */
  readonly imageBytes: readonly number[];
}

/** Null if each sample has one image. */
export function raggedRowsOf(output: BatchOutput): RaggedRows | null {
  if (output.kind !== 'pixels' || output.ragged === null) return null;
  return { max: output.ragged.max, imageBytes: output.sizes.map((size) => imageBytesOf(output, size)) };
}

/** Row sizes for each batch size. Encoded images, and images in a list, are stored elsewhere. */
export function rowBytesOf(output: BatchOutput, extraFields: readonly ExtraField[], transforms: number): RowBytes[] {
  if (output.kind !== 'pixels') {
    const arrays = extraFields.map(({ array }) => (array === undefined ? 0 : npyRowBytes(array)));
    return new Array<RowBytes>(transforms).fill({ image: 0, extraFields: arrays });
  }
  return output.sizes.map((size) => {
    const { width, height } = size;
    const image = imageBytesOf(output, size);
    const bytesOf = { image, mask: width * height, field: 0, annotation: 0, columns: 0, array: 0 };
    return { image: image * (output.ragged?.max ?? 1), extraFields: extraFields.map(({ kind }) => bytesOf[kind]) };
  });
}
