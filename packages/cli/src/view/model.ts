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
import { coloured, masksOf, type Picture } from './pictures.js';
import type { DrawnObject, ModelObjects } from './protocol.js';

export interface ModelRequest {
  readonly transform: TransformInput;
  readonly seed: number;
  readonly epoch: number;
}

/** What lies on a sample as it is stored. */
interface Given {
  /** Null also where they are not what they should be: the large view says so. */
  readonly objects: GivenAnnotations | null;
  /** Names of fields. */
  readonly masks: readonly string[];
}

/** One transform at a time: the page asks for 16 samples of one, then of the next. */
export class ModelView {
  readonly #dataset: Dataset;
  readonly #annotations: AnnotationOptions | undefined;
  #opened: { readonly name: string; readonly decoder: Promise<SampleDecoder> } | null = null;
  /** A decoder takes one call after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(dataset: Dataset, annotations: AnnotationOptions | undefined) {
    this.#dataset = dataset;
    this.#annotations = annotations;
  }

  /** Rejects with OptionError for a transform that is not right, with BadSampleError where a sample cannot be decoded. */
  async picture(number: number, request: ModelRequest, signal: AbortSignal): Promise<Picture> {
    const given = await this.#givenOf(number);
    const { image } = await this.#inTurn(number, request, given, signal);
    return pictureOf(image!, request.transform);
  }

  /** What lies on that picture. Rejects as {@link picture} does. */
  async objects(number: number, request: ModelRequest, signal: AbortSignal): Promise<ModelObjects> {
    const given = await this.#givenOf(number);
    const { masks } = given;
    if (given.objects === null && masks.length === 0) return { width: 0, height: 0, objects: [], masks };
    const { image, objects } = await this.#inTurn(number, request, given, signal);
    const { width, height } = image!;
    if (objects === null) return { width, height, objects: [], masks };
    // Of an object that was cropped away a loader has an empty box.
    const isThere = ({ box }: DrawnObject) => box === null || (box[2] > box[0] && box[3] > box[1]);
    const found = drawn(objects, { width, height }, this.#dataset.classes);
    return { width, height, objects: found.filter(isThere), masks };
  }

  /** A mask of the sample where its pixels went, in colours. Rejects as {@link picture} does, and where it has no such mask. */
  async mask(number: number, field: string, request: ModelRequest, signal: AbortSignal): Promise<Picture> {
    const given = await this.#givenOf(number);
    if (!given.masks.includes(field)) throw new OptionError({}, `The sample has no mask "${field}".`);
    const { image, masks } = await this.#inTurn(number, request, { ...given, wanted: [field] }, signal);
    return coloured(masks[field]!, image!);
  }

  async close(): Promise<void> {
    await this.#last;
    (await this.#opened?.decoder.catch(() => null))?.close();
  }

  #inTurn(
    number: number,
    { transform, seed, epoch }: ModelRequest,
    { objects, wanted = [] }: Given & { readonly wanted?: readonly string[] },
    signal: AbortSignal,
  ): Promise<DecodedSample> {
    const turn = this.#last.then(async () => {
      signal.throwIfAborted();
      return (await this.#decoderOf(transform, seed)).get(number, { epoch, objects, masks: wanted });
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #givenOf(number: number): Promise<Given> {
    const sample = await this.#dataset.get(number, { checksum: false });
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
  // Bytes of their own, where a float may begin.
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
