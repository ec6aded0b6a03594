import { SampleDecodeError, sentence, sentenceOf } from '@shardtool/base';
import type { CodecName, ImageHeader, Pixels, Rect, Reduction, Size } from '../codec/codec.js';
import { SplicedCrops } from '../codec/crop-index/spliced-crops.js';
import { TurboJpegCodec } from '../codec/jpeg/turbojpeg.js';
import { readMask } from '../codec/mask.js';
import type { StoredImage } from '../codec/npy.js';
import { storedRect, turnedSize, turnPixels, UPRIGHT } from '../codec/orientation.js';
import { isRgb, type PixelFormat } from '../codec/pixel-format.js';
import { type Region, Scratch } from '../codec/scratch.js';
import { type CodecChoice, checkPixels, type OpenCodecs, openCodecs, openImage } from '../codec/select.js';
import { CROP_STATE_BYTES } from '../kernels/crop-index.js';
import { EffectKernels } from '../kernels/effects.js';
import { ExactResizeKernel } from '../kernels/exact-resize.js';
import { halfFloatTable } from '../kernels/half-float.js';
import type { KernelMemory } from '../kernels/kernel-memory.js';
import type { PixelResizeKernel } from '../kernels/pixel-resize.js';
import { DecodeBufferError, ResizeKernel, SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import { WideResizeKernel } from '../kernels/wide-resize.js';
import type { Annotations, GivenAnnotations } from '../transform/annotations.js';
import { type DecodeMode, planSample, reducedPlan, reductionOf, type SamplePlan } from '../transform/plan.js';
import { FIRST_NUMBER, SampleRandom } from '../transform/random.js';
import { type CompiledTransform, hasEffects, outputPixelBytes, pixelBytes } from '../transform/transform.js';
import type { DecodedImage, ExtraFieldImage, SampleIdentity, ShownPart, StoredMask } from './decoded.js';
import { eraseValues } from './erase-values.js';
import { inputOf, type PassClock, type PassTools, runPasses } from './passes.js';
import { type DecodedTransforms, kernelBytesWithin, transformsOf } from './scratch-size.js';
import { transformMask } from './transform-mask.js';
import { type ViewCounts, ViewsDecoder, type ViewTargets } from './views-decoder.js';
import { WidePasses } from './wide-passes.js';

export interface DecoderOptions extends DecodedTransforms {
  readonly memory: KernelMemory;
  /** The part of the memory that this decoder may use. `offset` is a multiple of 64. See `scratchBytesFor` for the size. */
  readonly scratch: Region;
  /** The seed of each dataset of a mixture, or of the only dataset. */
  readonly seeds: readonly number[];
  /** Images with more pixels are rejected before memory is allocated for them. */
  readonly maxPixels: number;
  /** Rotates and mirrors images according to their EXIF orientation. */
  readonly applyExifOrientation: boolean;
  /** Default: `scaled`. */
  readonly decode?: DecodeMode;
  /** Whether {@link Decoder.shown} is requested. Default: false. */
  readonly showsParts?: boolean;
  /** The size that every image must have after the transform, if there are no `covers`. Default: any size, for {@link Decoder.decodeToArray}. */
  readonly outputSize?: Size;
  /** Forces a codec; see {@link openCodecs}. */
  readonly codec?: CodecName;
}

/** Opens the codecs and the kernel of one worker. */
export async function createDecoder(options: DecoderOptions): Promise<Decoder> {
  const { format } = options.transform;
  return new Decoder(options, await openCodecs({ ...options, format }));
}

/** Decodes and transforms images into rows of a batch, one at a time. Belongs to one worker. */
export class Decoder {
  /** The codec for JPEGs, and why it was chosen. */
  readonly codec: CodecChoice;
  /** Clock of the passes on decoded pixels. */
  readonly clock: PassClock = { isOn: false, ms: 0 };
  readonly #options: DecoderOptions;
  readonly #codecs: OpenCodecs;
  readonly #scratch: Scratch;
  readonly #tools: PassTools;
  /** Tools by index of the batch size. */
  readonly #toolsOfSizes: readonly PassTools[];
  readonly #randoms: readonly SampleRandom[];
  /** Null if the JPEG codec cannot use crop indexes. */
  readonly #spliced: SplicedCrops | null;
  readonly #views: ViewsDecoder | null = null;
  #warnings = 0;
  #narrowed = 0;
  #shown: ShownPart | null = null;
  #annotations: Annotations | null = null;

  constructor(options: DecoderOptions, codecs: OpenCodecs) {
    const { memory, scratch, transform } = options;
    const kernelScratch = {
      offset: scratch.offset,
      bytes: kernelBytesWithin(scratch.bytes, transformsOf(options)),
    };
    const splicerState = kernelScratch.offset + kernelScratch.bytes;
    const used = kernelScratch.bytes + CROP_STATE_BYTES;
    this.codec = codecs.choice;
    this.#options = options;
    this.#codecs = codecs;
    this.#scratch = new Scratch(memory, { offset: scratch.offset + used, bytes: scratch.bytes - used });
    this.#spliced = codecs.jpeg instanceof TurboJpegCodec ? new SplicedCrops(codecs.jpeg, memory, splicerState) : null;
    const kernel = new ResizeKernel(memory, kernelScratch);
    const effects = transformsOf(options).some(hasEffects) ? new EffectKernels(memory) : null;
    const resizer = isRgb(transform.format) ? null : pixelKernel(memory, transform.format);
    const toolsOf = (one: CompiledTransform): PassTools => ({
      kernel,
      scratch: this.#scratch,
      clock: this.clock,
      effects,
      halfFloats: isRgb(one.format) && one.dtype === 'float16' ? halfFloatTable(one.normalization!) : null,
      wide: resizer === null ? null : new WidePasses(one, this.#scratch, resizer),
    });
    this.#tools = toolsOf(transform);
    this.#toolsOfSizes = options.covers?.map(toolsOf) ?? [this.#tools];
    this.#randoms = options.seeds.map((seed) => new SampleRandom(seed));
    if (options.views === undefined) return;
    const { maxPixels, applyExifOrientation, decode = 'scaled' } = options;
    const tools = options.views.transforms.map(toolsOf);
    const { scratch: memoryOfImages } = this.#tools;
    this.#views = new ViewsDecoder({
      ...options.views,
      tools,
      codecs,
      spliced: this.#spliced,
      scratch: memoryOfImages,
      randoms: this.#randoms,
      maxPixels,
      applyExifOrientation,
      decode,
    });
  }

  /** Number of warnings from decoded images since the last {@link takeWarnings}. */
  get warnings(): number {
    return this.#warnings;
  }

  /** The annotations of the last decoded image, moved with its pixels. Null if it has none. */
  get annotations(): Annotations | null {
    return this.#annotations;
  }

  /** Number of images of which only the data of the crop were decoded, with a crop index, since the last call. */
  takeSpliced(): number {
    return this.#spliced?.take() ?? 0;
  }

  /** The visible part of the last decoded image. Null if batches do not have several sizes. */
  get shown(): ShownPart | null {
    return this.#shown;
  }

  /** Number of images with more than 8 bits per channel, of which the upper 8 bits were used, since the last call. */
  takeNarrowed(): number {
    const narrowed = this.#narrowed;
    this.#narrowed = 0;
    return narrowed;
  }

  /** Returns {@link warnings} and resets them to 0. */
  takeWarnings(): number {
    const warnings = this.#warnings;
    this.#warnings = 0;
    return warnings;
  }

  /**
   * Writes the transformed image to address `target`, in the transform's layout and output shape. Throws, or rejects with,
   * {@link SampleDecodeError}; then the content of the target is undefined. Returns a promise only if the codec is asynchronous.
   * One call must finish before the next starts. `extraFields` are transformed like the image, with the same random numbers.
   * `cropIndex` is the packed crop index of the image; it does not change the pixels. `given` are the annotations of the image:
   * see {@link annotations}.
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
    if (this.#options.showsParts) this.#shown = shownPart(image);
    if (image.pixels instanceof Promise) {
      return image.pixels.then((pixels) => {
        this.#finish(image, pixels, target);
        return this.#decodeExtraFields(image, sample, extraFields, given);
      });
    }
    this.#finish(image, image.pixels, target);
    if (extraFields.length > 0) return this.#decodeExtraFields(image, sample, extraFields, given);
  }

  /** Like {@link decode}, for a decoder with `views`. */
  decodeViews(
    bytes: Uint8Array,
    sample: SampleIdentity,
    targets: ViewTargets,
    cropIndex: Uint8Array | null = null,
  ): void | Promise<void> {
    const counts = this.#views!.decode(bytes, sample, targets, cropIndex);
    if (counts instanceof Promise) return counts.then((counted) => this.#count(counted));
    this.#count(counts);
  }

  #count({ warnings, isNarrowed }: ViewCounts): void {
    this.#warnings += warnings;
    if (isNarrowed) this.#narrowed++;
  }

  /** Like {@link decode}, for an image that has not been read yet. If it is uncompressed, only the rows of the crop are read. */
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
    if (this.#options.showsParts) this.#shown = shownPart(image);
    this.#finish(image, image.pixels, target);
  }

  /**
   * Decodes an image into a new array, with any output size. `masks` are transformed with the image and returned with one byte
   * per pixel. Rejects with {@link SampleDecodeError}.
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
    const size = width * height * outputPixelBytes(this.#options.transform);
    const target = this.#scratch.allocate(size);
    this.#finish(image, pixels, target);
    return {
      pixels: this.#scratch.memory.slice(target, target + size),
      width,
      height,
      masks: masks.map((mask) => this.#maskOf(mask, image)),
    };
  }

  /** Returns the address of `bytes` free bytes of scratch memory, valid until the next image. */
  spare(bytes: number): number {
    this.#scratch.reset();
    return this.#scratch.allocate(bytes);
  }

  close(): void {
    this.#codecs.jpeg.close();
    this.#codecs.other.close();
  }

  async #decodeExtraFields(
    first: PlannedImage<unknown>,
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
        // Some steps depend on the annotations.
        const image = this.#start(bytes, sample, null, given);
        const pixels = await image.pixels;
        checkSameSize(image.size, first.size);
        this.#finish(image, pixels, target);
      } catch (cause) {
        throw withField(field, cause);
      }
    }
  }

  /** Decodes a mask and transforms it with the plan of its image. */
  #maskOf({ field, bytes }: StoredMask, { size, full }: PlannedImage<unknown>): Uint8Array {
    try {
      const mask = readMask(bytes, this.#options.maxPixels);
      checkSameSize(mask, size);
      return transformMask(mask, full.passes).values;
    } catch (cause) {
      throw withField(field, cause);
    }
  }

  /** Plans the sample, and starts to decode the pixels that its first pass needs. */
  #start(
    bytes: Uint8Array,
    sample: SampleIdentity,
    cropIndex: Uint8Array | null,
    given: GivenAnnotations | null,
  ): PlannedImage<Pixels | Promise<Pixels>> {
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
  ): PlannedImage<P> {
    const { covers, applyExifOrientation } = this.#options;
    const transform = covers?.[sample.bucket!] ?? this.#options.transform;
    const orientation = applyExifOrientation ? sample.orientation : UPRIGHT;
    const size = turnedSize(header, orientation);
    const random = this.#randoms[sample.source]!.start(
      sample.epoch,
      sample.number,
      sample.occurrence,
      FIRST_NUMBER.transform,
      sample.view ?? 0,
    );
    const full = planSample(transform, size.width, size.height, random, given);
    checkSize(full, covers === undefined ? this.#options.outputSize : (transform.outputShape ?? undefined));
    const reduction =
      header.reducible && orientation === UPRIGHT ? reductionOf(full, this.#options.decode ?? 'scaled') : 1;
    const plan = reducedPlan(full, size, reduction);
    const input = inputOf(plan.passes[0]!);
    const pixels = decodeRegion(storedRect(input, header, orientation), reduction);
    return {
      size,
      full,
      plan,
      input,
      orientation,
      pixels,
      transform,
      tools: this.#toolsOfSizes[covers === undefined ? 0 : sample.bucket!]!,
    };
  }

  #finish({ plan, input, orientation, transform, tools }: PlannedImage<unknown>, pixels: Pixels, target: number): void {
    this.#warnings += pixels.warnings;
    const upright = orientation === UPRIGHT ? pixels : this.#turn(pixels, input, orientation);
    try {
      runPasses(plan.passes, upright, transform, tools, target);
      const { effects, scratch, wide } = tools;
      if (wide !== null) wide.erase(plan.erased, plan, target);
      else if (effects && plan.erased.length > 0) {
        eraseValues(plan.erased, plan, transform, { effects, scratch }, target);
      }
    } catch (cause) {
      if (!(cause instanceof DecodeBufferError)) throw cause;
      throw new SampleDecodeError({}, cause.message, { cause });
    }
  }

  #turn(stored: Pixels, size: Size, orientation: number): Pixels {
    const bytes = pixelBytes(this.#options.transform.format);
    const offset = this.#scratch.allocate(size.width * size.height * bytes + SOURCE_SLACK_BYTES);
    turnPixels(this.#scratch.memory, stored, size, orientation, offset, bytes);
    return { offset, stride: size.width * bytes, warnings: 0 };
  }
}

/** Adds the name of the field to a decode error. */
/** The kernel that resizes pixels of a format other than 8-bit RGB. */
function pixelKernel(memory: KernelMemory, { dtype }: PixelFormat): PixelResizeKernel {
  return dtype === 'uint8' ? new ExactResizeKernel(memory) : new WideResizeKernel(memory, dtype);
}

function withField(field: string, cause: unknown): unknown {
  if (!(cause instanceof SampleDecodeError)) return cause;
  return new SampleDecodeError({}, sentence`its field "${field}": ${sentenceOf(cause)}`, { cause });
}

/** Derives the visible part from the first pass, which contains the resize and all flips. */
function shownPart({ size, full }: PlannedImage<unknown>): ShownPart {
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
    `its size after the transform is ${plan.width}x${plan.height}, but the images of the batch have ${expected.width}x${expected.height}`,
  );
}

/** The sample is not damaged: the transform does not give all images the same size. */
export class OtherSize extends SampleDecodeError {}

/** Throws unless an extra image or mask has the size of the main image, because they share crops. */
function checkSameSize(extra: Size, image: Size): void {
  if (extra.width === image.width && extra.height === image.height) return;
  throw new SampleDecodeError(
    {},
    `it is ${extra.width}x${extra.height} pixels, but the image is ${image.width}x${image.height}; both must have the same size`,
  );
}

interface PlannedImage<P> {
  /** Size of the upright image. */
  readonly size: Size;
  /** The plan for the image at full size. */
  readonly full: SamplePlan;
  /** The plan for the image as it is decoded, possibly at a reduced size. */
  readonly plan: SamplePlan;
  /** The part of the upright image to decode. */
  readonly input: Rect;
  readonly orientation: number;
  readonly transform: CompiledTransform;
  readonly tools: PassTools;
  readonly pixels: P;
}
