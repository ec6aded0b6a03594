import {
  CALL_OPTIONS,
  type CheckedValues,
  checkCallOptions,
  checkGiven,
  type OptionTable,
  optionName,
  SampleDecodeError,
  sentence,
  sentenceOf,
} from '@shardtool/base';
import { headerOf, imageFields, nameTable } from '@shardtool/format';
import { formatOf, isBackground } from '../codec/pixel-format.js';
import { checkDataset } from '../dataset/check-dataset.js';
import { checkFields, checkFieldsAndColumns } from '../dataset/fields/field-names.js';
import { type FieldValue, fieldValue } from '../dataset/fields/field-values.js';
import type { Sample } from '../dataset/samples.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { DecodedImage, StoredMask } from '../decode/decoded.js';
import { createDecoder, type Decoder } from '../decode/decoder.js';
import { scratchBytesFor } from '../decode/scratch-size.js';
import { warnNarrowed } from '../loader/deliver/narrowed.js';
import { adviceOn, BadSampleError, clauseOf } from '../loader/deliver/rows/bad-rows.js';
import { LOADER_OPTIONS } from '../loader/option-table.js';
import { type CheckedOptions, isImageChoice, type LoaderOptions } from '../loader/options.js';
import { hasImages, refuseImageOptions } from '../loader/setup/image-choice.js';
import { nameOfImage } from '../loader/setup/output-request.js';
import type { Annotations, GivenAnnotations } from '../transform/annotations.js';
import { type CompiledTransform, compileTransform } from '../transform/transform.js';

const { transform, seed, image, fields, masks, channels, pixelDtype, background } = LOADER_OPTIONS;
const { maxPixels, decode, applyExifOrientation } = LOADER_OPTIONS;
/** The options of a loader that apply to a single sample. */
const PIXELS = { channels, pixelDtype, background, maxPixels, decode, applyExifOrientation };
const OPTIONS = { transform, seed, image, fields, masks, ...PIXELS };
const OWNER = {
  name: 'A sample decoder',
  wrong: (name: string) => sentence`The option ${optionName(name)} is invalid`,
};

/** Options of a sample decoder. They mean the same as for a loader. Without a transform, images keep their size. */
export type SampleDecoderOptions = Pick<LoaderOptions, keyof typeof OPTIONS>;

type Checked = Omit<CheckedValues<typeof OPTIONS>, 'image'> & Pick<CheckedOptions, 'image'>;

/** How one sample is decoded. */
export interface DecodeRequest {
  /**
   * Together with the index of the sample and the seed, it determines the random numbers, as in a loader. Default: 0.
   */
  readonly epoch?: number | undefined;
  /**
   * Number of earlier occurrences of the sample in the epoch. Each occurrence draws different random numbers. Default:
   * 0.
   */
  readonly occurrence?: number | undefined;
  /** Objects on the stored image. Some steps depend on them. */
  readonly objects?: GivenAnnotations | null | undefined;
  /** Fields that are masks of the image, instead of those of the decoder. */
  readonly masks?: readonly string[] | undefined;
  /** Whether to return the stored image, as with `transform: 'raw'`. Default: false. */
  readonly encoded?: boolean | undefined;
  /** Ends the call with the signal's reason, while the sample is read. */
  readonly signal?: AbortSignal | undefined;
}

const REQUEST = {
  epoch: { kind: 'whole', from: 0, default: 0, help: 'Epoch of the random numbers' },
  occurrence: { kind: 'whole', from: 0, default: 0, help: 'How often the sample occurred before' },
  objects: { kind: 'own', type: 'GivenAnnotations', must: 'is an object, or null', help: 'Objects on the image' },
  masks: { kind: 'texts', help: 'Fields that are masks' },
  encoded: { kind: 'switch', default: false, help: 'Whether the image is returned as it is stored' },
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;
const REQUEST_CHECKS = { objects: (value: unknown) => typeof value === 'object' };

/** One sample, decoded. */
export interface DecodedSample {
  /** Index in the dataset. */
  readonly index: number;
  readonly key: string;
  /** Class number; -1 if the sample has no class. */
  readonly label: number;
  /** Pixels in the transform's dtype and layout; null with `transform: 'raw'`, and for samples without an image. */
  readonly image: DecodedImage | null;
  /** The stored image with `transform: 'raw'`, otherwise null. */
  readonly encoded: Uint8Array | null;
  /** Values of the requested masks, uint8 [height, width], transformed like the image. Masks that the sample lacks are omitted. */
  readonly masks: Readonly<Record<string, Uint8Array>>;
  /** The objects of the request that are still on the image, in pixels of `image`; null if the request had none. */
  readonly objects: GivenAnnotations | null;
  /** Values of the requested fields and label columns; null for a field that the sample lacks. */
  readonly fields: Readonly<Record<string, FieldValue | null>>;
}

/**
 * Decodes single samples of a dataset in any order, for evaluation, custom samplers and viewers. It works synchronously
 * on the calling thread. To read all samples, a loader is many times as fast.
 */
export class SampleDecoder {
  readonly #dataset: StoredDataset;
  readonly #options: Omit<Checked, 'transform'>;
  /** False: samples have only fields. */
  readonly #hasImages: boolean;
  /** Null if images stay encoded, or there are none. */
  readonly #decoder: Decoder | null;

  private constructor(dataset: StoredDataset, options: Checked, hasImages: boolean, decoder: Decoder | null) {
    this.#dataset = dataset;
    this.#options = options;
    this.#hasImages = hasImages;
    this.#decoder = decoder;
  }

  /** Opens the codecs. Rejects with OptionError for invalid options, and for fields that no sample has. */
  static async open(dataset: StoredDataset, given: SampleDecoderOptions = {}): Promise<SampleDecoder> {
    checkDataset('SampleDecoder.open', dataset);
    const options = checkGiven(OWNER, OPTIONS, given, {
      transform: (value) => typeof value === 'string' || Array.isArray(value),
      background: isBackground,
      image: isImageChoice,
    }) as Checked;
    const withImages = await hasImages(dataset, given);
    if (!withImages) refuseImageOptions(given);
    const transform = given.transform === 'raw' ? null : compileTransform(given.transform ?? [], formatOf(given));
    const image = nameOfImage(options);
    checkFields('image', image === undefined ? [] : [image], dataset);
    checkFields('masks', options.masks ?? [], dataset);
    await checkFieldsAndColumns('fields', options.fields ?? [], dataset);
    const decoder = withImages && transform !== null ? await decoderOf(transform, options) : null;
    return new SampleDecoder(dataset, options, withImages, decoder);
  }

  /**
   * Decodes a sample, by its index or key. Rejects with {@link SampleNotFoundError}, with {@link BadSampleError} if it
   * cannot be decoded, and with SampleChecksumError if its bytes have changed.
   */
  async get(keyOrIndex: string | number, request: DecodeRequest = {}): Promise<DecodedSample> {
    checkCallOptions('get', REQUEST, request, REQUEST_CHECKS);
    const { masks = this.#options.masks ?? [], encoded = false, signal } = request;
    const decoder = encoded ? null : this.#decoder;
    const sample = await this.#dataset.get(keyOrIndex, { signal });
    try {
      const bytes = this.#hasImages ? this.#imageOf(sample) : null;
      const { index, key, label } = sample;
      const named = masks.flatMap((field) => (field in sample.fields ? [{ field, bytes: sample.fields[field]! }] : []));
      const decoded = decoder && bytes && (await this.#decode(decoder, bytes, index, request, named));
      const image = decoded && { pixels: decoded.pixels, width: decoded.width, height: decoded.height };
      const { annotations = null } = decoder ?? {};
      return {
        index,
        key,
        label,
        image,
        encoded: image === null ? bytes : null,
        fields: this.#fieldsOf(sample),
        masks: nameTable(decoded === null ? [] : named.map(({ field }, i) => [field, decoded.masks[i]!])),
        objects: annotations && inPixels(annotations),
      };
    } catch (cause) {
      const isBad = cause instanceof SampleDecodeError || (cause as Error).name === 'SyntaxError';
      if (!isBad) throw cause;
      const { shard, key } = sample;
      const reason = sentenceOf(cause as Error);
      throw new BadSampleError(
        { shard, key },
        sentence`${shard}: sample "${key}" cannot be used: ${clauseOf(reason)}.${adviceOn(reason)}`,
        { cause },
      );
    }
  }

  close(): void {
    this.#decoder?.close();
  }

  #imageOf({ fields }: Sample): Uint8Array {
    const name = nameOfImage(this.#options) ?? imageFields(Object.keys(fields))[0];
    const bytes = name === undefined ? undefined : fields[name];
    if (bytes !== undefined) return bytes;
    throw new SampleDecodeError({}, name === undefined ? 'it has no image' : `it has no field "${name}"`);
  }

  #decode(
    decoder: Decoder,
    bytes: Uint8Array,
    number: number,
    { epoch = 0, occurrence = 0, objects = null }: DecodeRequest,
    masks: readonly StoredMask[],
  ): ReturnType<Decoder['decodeToArray']> {
    const orientation = headerOf(bytes)?.orientation ?? 1;
    const sample = { epoch, source: 0, number, occurrence, orientation };
    const decoded = decoder.decodeToArray(bytes, sample, null, objects, masks);
    if (decoder.takeNarrowed() > 0) warnNarrowed(this);
    return decoded;
  }

  #fieldsOf({ fields, columns }: Sample): Record<string, FieldValue | null> {
    const values = nameTable<FieldValue | null>();
    for (const name of this.#options.fields ?? []) {
      const bytes = fields[name];
      values[name] = bytes === undefined ? (columns[name] ?? null) : fieldValue(name, bytes);
    }
    return values;
  }
}

function inPixels({ rows, boxes, labels, keypoints, perObject, polygons }: Annotations): GivenAnnotations {
  const normalized = { boxes: false, keypoints: false, polygons: false };
  const points = keypoints && { perObject, values: keypoints };
  return { count: rows.length, boxes, labels, keypoints: points, polygons, normalized };
}

const PAGE_BYTES = 65_536;

function decoderOf(
  transform: CompiledTransform,
  { maxPixels, decode = 'scaled', applyExifOrientation = false, seed = 0 }: CheckedValues<typeof OPTIONS>,
): Promise<Decoder> {
  const scratch = { offset: 0, bytes: scratchBytesFor({ transform }, maxPixels) };
  const pages = Math.ceil(scratch.bytes / PAGE_BYTES);
  // This is only address space: the system allocates memory when it is first used.
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const seeds = [seed];
  return createDecoder({ memory, scratch, transform, seeds, maxPixels, applyExifOrientation, decode });
}
