import { SampleDecodeError } from '@shardtool/base';
import type { CodecName, ImageHeader, Pixels, Rect, Reduction } from '../codec/codec.js';
import { SplicedCrops } from '../codec/crop-index/spliced-crops.js';
import { readMask } from '../codec/mask.js';
import type { StoredImage } from '../codec/npy.js';
import { storedRect, turnedSize, turnPixels, UPRIGHT } from '../codec/orientation.js';
import { type Region, Scratch } from '../codec/scratch.js';
import { type CodecChoice, checkPixels, type OpenCodecs, openCodecs, openImage } from '../codec/select.js';
import { TurboJpegCodec } from '../codec/turbojpeg.js';
import { CROP_STATE_BYTES } from '../kernels/crop-index.js';
import { EffectKernels } from '../kernels/effects.js';
import { halfFloatTable } from '../kernels/half-float.js';
import type { KernelMemory } from '../kernels/kernel-memory.js';
import { DecodeBufferError, ResizeKernel, SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { Annotations, GivenAnnotations } from '../transform/annotations.js';
import type { Size } from '../transform/crops.js';
import { type DecodeMode, planSample, reducedPlan, reductionOf, type SamplePlan } from '../transform/plan.js';
import { SampleRandom } from '../transform/random.js';
import { hasEffects } from '../transform/transform.js';
import { valueBytes } from '../transform/values.js';
import type { DecodedImage, ExtraFieldImage, SampleIdentity, ShownPart, StoredMask } from './decoded.js';
import { eraseValues } from './erase-values.js';
import { inputOf, type PassTools, runPasses } from './passes.js';
import { type DecodedTransforms, kernelBytesWithin } from './scratch-size.js';
import { transformMask } from './transform-mask.js';

export interface DecoderOptions extends DecodedTransforms {
  readonly memory: KernelMemory;
  /** This decoder's part of the memory; `offset` is a multiple of 64. See `scratchBytesFor`. */
  readonly scratch: Region;
  /** Of each source of samples. */
  readonly seeds: readonly number[];
  /** Images of more pixels are refused before any memory is taken for them. */
  readonly maxPixels: number;
  /** Turns images as their EXIF orientation says. */
  readonly applyExifOrientation: boolean;
  /** Default `scaled`. */
  readonly decode?: DecodeMode;
  /** The size that every image must have after the transform, without `covers`; by default any, which is for {@link Decoder.decodeToArray}. */
  readonly outputSize?: Size;
  /** Forces a codec; see {@link openCodecs}. */
  readonly codec?: CodecName;
}

/** Opens the codecs and the kernel of one worker. */
export async function createDecoder(options: DecoderOptions): Promise<Decoder> {
  return new Decoder(options, await openCodecs(options));
}

/** Turns encoded images into rows of a batch, one at a time. Belongs to one worker. */
export class Decoder {
  /** How JPEGs are decoded, and why so. */
  readonly codec: CodecChoice;
  readonly #options: DecoderOptions;
  readonly #codecs: OpenCodecs;
  readonly #scratch: Scratch;
  readonly #tools: PassTools;
  readonly #randoms: readonly SampleRandom[];
  /** Null where crop indexes are of no use. */
  readonly #spliced: SplicedCrops | null;
  #warnings = 0;
  #narrowed = 0;
  #shown: ShownPart | null = null;
  #annotations: Annotations | null = null;

  constructor(options: DecoderOptions, codecs: OpenCodecs) {
    const { memory, scratch, transform } = options;
    const kernelScratch = {
      offset: scratch.offset,
      bytes: kernelBytesWithin(scratch.bytes, options.covers ?? [transform]),
    };
    const splicerState = kernelScratch.offset + kernelScratch.bytes;
    const used = kernelScratch.bytes + CROP_STATE_BYTES;
    this.codec = codecs.choice;
    this.#options = options;
    this.#codecs = codecs;
    this.#scratch = new Scratch(memory, { offset: scratch.offset + used, bytes: scratch.bytes - used });
    this.#spliced = codecs.jpeg instanceof TurboJpegCodec ? new SplicedCrops(codecs.jpeg, memory, splicerState) : null;
    this.#tools = {
      kernel: new ResizeKernel(memory, kernelScratch),
      scratch: this.#scratch,
      effects: hasEffects(transform) ? new EffectKernels(memory) : null,
      halfFloats: transform.dtype === 'float16' ? halfFloatTable(transform.normalization!) : null,
    };
    this.#randoms = options.seeds.map((seed) => new SampleRandom(seed));
  }

  /** Images that were decoded although something in them was odd, since the last {@link takeWarnings}. */
  get warnings(): number {
    return this.#warnings;
  }

  /** What lies on the image that was decoded last, moved as its pixels were. Null where nothing was given with it. */
  get annotations(): Annotations | null {
    return this.#annotations;
  }

  /** Images of which only a crop's own data were decoded, by their crop index, since the last call. */
  takeSpliced(): number {
    return this.#spliced?.take() ?? 0;
  }

  /** Of the image that was decoded last, where batches are of several sizes. */
  get shown(): ShownPart | null {
    return this.#shown;
  }

  /** Images of more than 8 bits a channel, whose pixels have the upper 8, since the last call. */
  takeNarrowed(): number {
    const narrowed = this.#narrowed;
    this.#narrowed = 0;
    return narrowed;
  }

  /** {@link warnings}, which begin at 0 again. */
  takeWarnings(): number {
    const warnings = this.#warnings;
    this.#warnings = 0;
    return warnings;
  }

  /**
   * Writes the transformed image to address `target`, in the transform's layout and output shape. Throws, or rejects with,
   * {@link SampleDecodeError}; then the target may hold anything. Returns nothing where the codec is synchronous. One call
   * must end before the next begins. `companions` are transformed as the image is, with the same random numbers. `cropIndex` is
   * the image's, packed: the pixels are the same with it and without. `given` is what lies on the image: see {@link annotations}.
   */
  decode(
    bytes: Uint8Array,
    sample: SampleIdentity,
    target: number,
    extraFields: readonly ExtraFieldImage[] = [],
    cropIndex: Uint8Array | null = null,
    given: GivenAnnotations | null = null,
  ): void | Promise<void> {
    const image = this.#start(bytes, sample, cropIndex, given);
    this.#annotations = image.full.annotations;
    if (this.#options.covers !== undefined) this.#shown = shownPart(image);
    if (image.pixels instanceof Promise) {
      return image.pixels.then((pixels) => {
        this.#finish(image, pixels, target);
        return this.#decodeExtraFields(image, sample, extraFields, given);
      });
    }
    this.#finish(image, image.pixels, target);
    if (extraFields.length > 0) return this.#decodeExtraFields(image, sample, extraFields, given);
  }

  /** As {@link decode}, of an image that is still where it is stored: of an uncompressed one only the crop is read. */
  decodeStored(stored: StoredImage, sample: SampleIdentity, target: number): void | Promise<void> {
    const { npy } = this.#codecs;
    const header = npy.openStored(stored);
    if (header === null) {
      const bytes = new Uint8Array(stored.bytes);
      stored.read(0, bytes, 0, stored.bytes);
      return this.decode(bytes, sample, target);
    }
    checkPixels(header, this.#options.maxPixels);
    this.#scratch.reset();
    const image = this.#plan(header, sample, null, (crop) => npy.readRegion(stored, crop, this.#scratch));
    if (this.#options.covers !== undefined) this.#shown = shownPart(image);
    this.#finish(image, image.pixels, target);
  }

  /**
   * The transformed image, whatever its size, in memory of its own, and the values of `masks`, which are transformed with it, a
   * byte a pixel. Rejects with {@link SampleDecodeError}.
   */
  async decodeToArray(
    bytes: Uint8Array,
    sample: SampleIdentity,
    cropIndex: Uint8Array | null = null,
    given: GivenAnnotations | null = null,
    masks: readonly StoredMask[] = [],
  ): Promise<DecodedImage & { readonly masks: readonly Uint8Array[] }> {
    const image = this.#start(bytes, sample, cropIndex, given);
    this.#annotations = image.full.annotations;
    const pixels = await image.pixels;
    const { width, height } = image.plan;
    const size = width * height * 3 * valueBytes(this.#options.transform.dtype);
    const target = this.#scratch.allocate(size);
    this.#finish(image, pixels, target);
    return {
      ...{ pixels: this.#scratch.memory.slice(target, target + size), width, height },
      masks: masks.map((mask) => this.#maskOf(mask, image)),
    };
  }

  /** The address of so many bytes of scratch, until the next image. */
  spare(bytes: number): number {
    this.#scratch.reset();
    return this.#scratch.allocate(bytes);
  }

  close(): void {
    this.#codecs.jpeg.close();
    this.#codecs.other.close();
  }

  async #decodeExtraFields(
    first: ImageUnderWay<unknown>,
    sample: SampleIdentity,
    extraFields: readonly ExtraFieldImage[],
    given: GivenAnnotations | null,
  ): Promise<void> {
    for (const { field, kind, bytes, target } of extraFields) {
      if (kind === 'mask') {
        this.#scratch.memory.set(this.#maskOf({ field, bytes }, first), target);
        continue;
      }
      try {
        // Some steps go by what lies on the image.
        const image = this.#start(bytes, sample, null, given);
        const pixels = await image.pixels;
        checkAlike(image.size, first.size);
        this.#finish(image, pixels, target);
      } catch (cause) {
        throw ofField(field, cause);
      }
    }
  }

  /** The mask's values where its image's pixels went. */
  #maskOf({ field, bytes }: StoredMask, { size, full }: ImageUnderWay<unknown>): Uint8Array {
    try {
      const mask = readMask(bytes, this.#options.maxPixels);
      checkAlike(mask, size);
      return transformMask(mask, full.passes).values;
    } catch (cause) {
      throw ofField(field, cause);
    }
  }

  /** Plans the sample, and begins to decode the pixels that its first pass needs. */
  #start(
    bytes: Uint8Array,
    sample: SampleIdentity,
    cropIndex: Uint8Array | null,
    given: GivenAnnotations | null,
  ): ImageUnderWay<Pixels | Promise<Pixels>> {
    this.#scratch.reset();
    const { codec, header } = openImage(this.#codecs, bytes, this.#options.maxPixels);
    if (header.isNarrowed) this.#narrowed++;
    return this.#plan(header, sample, given, (crop, reduction) => {
      const spliced =
        cropIndex === null || codec !== this.#codecs.jpeg
          ? null
          : this.#spliced?.decode(bytes, header, cropIndex, crop, reduction, this.#scratch);
      return spliced ?? codec.decodeRegion(bytes, crop, reduction, this.#scratch);
    });
  }

  #plan<P>(
    header: ImageHeader,
    sample: SampleIdentity,
    given: GivenAnnotations | null,
    decodeRegion: (crop: Rect, reduction: Reduction) => P,
  ): ImageUnderWay<P> {
    const { covers, applyExifOrientation } = this.#options;
    const transform = covers?.[sample.bucket!] ?? this.#options.transform;
    const orientation = applyExifOrientation ? sample.orientation : UPRIGHT;
    const size = turnedSize(header, orientation);
    const random = this.#randoms[sample.source]!.start(sample.epoch, sample.number, sample.occurrence);
    const full = planSample(transform, size.width, size.height, random, given);
    checkSize(full, covers === undefined ? this.#options.outputSize : transform.outputShape!);
    const reduction =
      header.reducible && orientation === UPRIGHT ? reductionOf(full, this.#options.decode ?? 'scaled') : 1;
    const plan = reducedPlan(full, size, reduction);
    const input = inputOf(plan.passes[0]!);
    const pixels = decodeRegion(storedRect(input, header, orientation), reduction);
    return { size, full, plan, input, orientation, pixels };
  }

  #finish({ plan, input, orientation }: ImageUnderWay<unknown>, pixels: Pixels, target: number): void {
    this.#warnings += pixels.warnings;
    const upright = orientation === UPRIGHT ? pixels : this.#turn(pixels, input, orientation);
    try {
      runPasses(plan.passes, upright, this.#options.transform, this.#tools, target);
      const { effects, scratch } = this.#tools;
      if (effects && plan.erased.length > 0) {
        eraseValues(plan.erased, plan, this.#options.transform, { effects, scratch }, target);
      }
    } catch (cause) {
      if (!(cause instanceof DecodeBufferError)) throw cause;
      throw new SampleDecodeError({}, `${cause.message} Use fewer workers or a smaller batch.`, { cause });
    }
  }

  #turn(stored: Pixels, size: Size, orientation: number): Pixels {
    const offset = this.#scratch.allocate(size.width * size.height * 3 + SOURCE_SLACK_BYTES);
    turnPixels(this.#scratch.memory, stored, size, orientation, offset);
    return { offset, stride: size.width * 3, warnings: 0 };
  }
}

/** The error of a field, which says so. */
function ofField(field: string, cause: unknown): unknown {
  if (!(cause instanceof SampleDecodeError)) return cause;
  return new SampleDecodeError({}, `its field "${field}": ${cause.reason}`, { cause });
}

/** A flip is folded into the pass that resizes. */
function shownPart({ size, full }: ImageUnderWay<unknown>): ShownPart {
  const { x, y } = full.passes[0]!;
  return {
    original: size,
    resized: { width: x.output, height: y.output },
    left: x.flip ? x.output - x.first - x.count : x.first,
    top: y.flip ? y.output - y.first - y.count : y.first,
  };
}

function checkSize(plan: Size, expected: Size | undefined): void {
  if (expected === undefined || (plan.width === expected.width && plan.height === expected.height)) return;
  throw new OtherSize(
    {},
    `it comes out as ${plan.width}x${plan.height} and the batch is of ${expected.width}x${expected.height}`,
  );
}

/** Nothing is wrong with the sample: the transform does not make all images of one size. */
export class OtherSize extends SampleDecodeError {}

/** What shares a crop must have the same pixels to be cropped. */
function checkAlike(one: Size, image: Size): void {
  if (one.width === image.width && one.height === image.height) return;
  throw new SampleDecodeError(
    {},
    `it is ${one.width}x${one.height} pixels where the image is ${image.width}x${image.height}; they must be alike`,
  );
}

interface ImageUnderWay<P> {
  /** Of the turned image. */
  readonly size: Size;
  /** For the image at its full size; `plan` is for what is decoded of it. */
  readonly full: SamplePlan;
  readonly plan: SamplePlan;
  /** The part of the turned image that is decoded. */
  readonly input: Rect;
  readonly orientation: number;
  readonly pixels: P;
}
