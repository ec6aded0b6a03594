import { OptionError, SampleDecodeError } from '@shardtool/base';
import {
  type AnnotationOptions,
  type Dataset,
  type DecodedSample,
  type GivenAnnotations,
  outputOf,
  SampleDecoder,
  type TransformInput,
} from '@shardtool/reader';
import sharp from 'sharp';
import { type BatchPixels, imageTile, valueRange } from '../preview/tiles.js';
import { drawn, objectsOf } from './objects.js';
import { coloured, masksOf, type Picture } from './pictures/pictures.js';
import type { DrawnObject, ModelObjects } from './protocol.js';

export interface ModelRequest {
  readonly transform: TransformInput;
  readonly seed: number;
  readonly epoch: number;
}

/** Annotations and masks of a sample as it is stored. */
interface Given {
  /** Also null if the annotations are invalid. The large view reports that. */
  readonly objects: GivenAnnotations | null;
  /** Names of fields. */
  readonly masks: readonly string[];
}

/** Keeps one transform at a time: the page asks for 16 samples of one transform, then of the next. */
export class ModelView {
  readonly #dataset: Dataset;
  readonly #annotations: AnnotationOptions | undefined;
  #opened: { readonly name: string; readonly decoder: Promise<SampleDecoder> } | null = null;
  /** A decoder can only run one call at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(dataset: Dataset, annotations: AnnotationOptions | undefined) {
    this.#dataset = dataset;
    this.#annotations = annotations;
  }

  /** Rejects with OptionError if the transform is invalid, and with BadSampleError if a sample cannot be decoded. */
  async picture(index: number, request: ModelRequest, signal: AbortSignal): Promise<Picture> {
    const given = await this.#givenOf(index);
    const { image } = await this.#inTurn(index, request, given, signal);
    return pictureOf(image!, request.transform);
  }

  /** Returns the objects on the transformed picture. Rejects as {@link picture} does. */
  async objects(index: number, request: ModelRequest, signal: AbortSignal): Promise<ModelObjects> {
    const given = await this.#givenOf(index);
    const { masks } = given;
    if (given.objects === null && masks.length === 0) return { width: 0, height: 0, objects: [], masks };
    const { image, objects } = await this.#inTurn(index, request, given, signal);
    const { width, height } = image!;
    if (objects === null) return { width, height, objects: [], masks };
    // The loader gives an object that was cropped away an empty box.
    const isThere = ({ box }: DrawnObject) => box === null || (box[2] > box[0] && box[3] > box[1]);
    const found = drawn(objects, { width, height }, this.#dataset.classes);
    return { width, height, objects: found.filter(isThere), masks };
  }

  /**
   * Returns a mask of the sample, transformed as its pixels were, in colours. Rejects as {@link picture} does, and if
   * there is no such mask.
   */
  async mask(index: number, field: string, request: ModelRequest, signal: AbortSignal): Promise<Picture> {
    const given = await this.#givenOf(index);
    if (!given.masks.includes(field)) throw new OptionError({}, `The sample has no mask "${field}".`);
    const { image, masks } = await this.#inTurn(index, request, { ...given, wanted: [field] }, signal);
    return coloured(masks[field]!, image!);
  }

  async close(): Promise<void> {
    await this.#last;
    (await this.#opened?.decoder.catch(() => null))?.close();
  }

  #inTurn(
    index: number,
    { transform, seed, epoch }: ModelRequest,
    { objects, wanted = [] }: Given & { readonly wanted?: readonly string[] },
    signal: AbortSignal,
  ): Promise<DecodedSample> {
    const turn = this.#last.then(async () => {
      signal.throwIfAborted();
      return (await this.#decoderOf(transform, seed)).get(index, { epoch, objects, masks: wanted });
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #givenOf(index: number): Promise<Given> {
    const sample = await this.#dataset.get(index, { checksum: false });
    const masks = masksOf(sample);
    try {
      return { objects: objectsOf(sample, this.#annotations), masks };
    } catch (error) {
      if (!(error instanceof SampleDecodeError)) throw error;
      return { objects: null, masks };
    }
  }

  async #decoderOf(transform: TransformInput, seed: number): Promise<SampleDecoder> {
    const name = JSON.stringify([transform, seed]);
    if (this.#opened?.name !== name) {
      const before = await this.#opened?.decoder.catch(() => null);
      before?.close();
      this.#opened = { name, decoder: SampleDecoder.open(this.#dataset, { transform, seed }) };
    }
    return this.#opened.decoder;
  }
}

async function pictureOf(
  { pixels, width, height }: NonNullable<DecodedSample['image']>,
  transform: TransformInput,
): Promise<Picture> {
  const { dtype, layout } = outputOf(transform);
  // A copy, because floats have to be aligned.
  const bytes = new Uint8Array(pixels);
  const batch: BatchPixels = {
    images: dtype === 'float32' ? new Float32Array(bytes.buffer) : bytes,
    dtype,
    shape: layout === 'nhwc' ? [1, height, width, 3] : [1, 3, height, width],
  };
  const tile = imageTile(batch, 0, valueRange(transform));
  const picture = sharp(tile, { raw: { width, height, channels: 3 } }).png({ compressionLevel: 1 });
  return { type: 'image/png', bytes: await picture.toBuffer() };
}
