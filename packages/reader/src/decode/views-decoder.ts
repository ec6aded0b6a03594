import { SampleDecodeError, totalOf } from '@shardtool/base';
import type { ImageHeader, Pixels, Rect, Reduction, Size } from '../codec/codec.js';
import type { SplicedCrops } from '../codec/crop-index/spliced-crops.js';
import { cropCost } from '../codec/crop-index/worth-splicing.js';
import { storedRect, turnedSize, turnPixels, UPRIGHT } from '../codec/orientation.js';
import type { Scratch } from '../codec/scratch.js';
import { type OpenCodecs, openImage } from '../codec/select.js';
import type { Picture } from '../kernels/effects.js';
import { DecodeBufferError, SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import { resultOf } from '../transform/canvas.js';
import { type DrawnName, DrawnSteps } from '../transform/drawn-steps.js';
import { type DecodeMode, planSample, reducedPlan, reductionOf, type SamplePlan } from '../transform/plan.js';
import type { SampleRandom } from '../transform/random.js';
import { type CompiledTransform, pixelBytes } from '../transform/transform.js';
import type { SampleIdentity } from './decoded.js';
import { eraseValues } from './erase-values.js';
import { BYTES, inputOf, type PassTools, runPasses } from './passes.js';
import { allocatePicture } from './run-effects.js';

/** The parts that a {@link ViewsDecoder} shares with the decoder of its worker. */
export interface ViewsDecoderParts {
  readonly transforms: readonly CompiledTransform[];
  /** The tools of each view. They share the kernel and scratch memory. */
  readonly tools: readonly PassTools[];
  /** The view whose random numbers each view has. */
  readonly randomOf: readonly number[];
  readonly draws: readonly DrawnName[];
  readonly codecs: OpenCodecs;
  readonly spliced: SplicedCrops | null;
  readonly scratch: Scratch;
  readonly randoms: readonly SampleRandom[];
  readonly maxPixels: number;
  readonly decode: DecodeMode;
  readonly applyExifOrientation: boolean;
}

/** The memory for the views of one image. */
export interface ViewTargets {
  /** The address of each view. */
  readonly views: readonly number[];
  /** The random values drawn for each view, one after the other. Empty if nothing is recorded. */
  readonly drawn: Float32Array;
}

/** Counts of one image. */
export interface ViewCounts {
  readonly warnings: number;
  /** The image has more than 8 bits per channel. */
  readonly isNarrowed: boolean;
}

interface PlannedViews {
  /** Planned for the image as it is decoded. */
  readonly plans: readonly SamplePlan[];
  /** The part of the upright image that each view reads. */
  readonly inputs: readonly Rect[];
  readonly orientation: number;
}

/**
 * Makes all views of an image from one decode. The decoded part is the smallest that holds what all views need. If a crop index is
 * predicted to make it cheaper, each view decodes its own part. Both give the same pixels.
 */
export class ViewsDecoder {
  readonly #parts: ViewsDecoderParts;

  constructor(parts: ViewsDecoderParts) {
    this.#parts = parts;
  }

  /** Like `Decoder.decode`, for all views. */
  decode(
    bytes: Uint8Array,
    sample: SampleIdentity,
    targets: ViewTargets,
    cropIndex: Uint8Array | null,
  ): ViewCounts | Promise<ViewCounts> {
    const { codecs, scratch, spliced, maxPixels } = this.#parts;
    scratch.reset();
    const { codec, header } = openImage(codecs, bytes, maxPixels);
    const { isNarrowed = false } = header;
    const { planned, reduction } = this.#plan(header, sample, targets.drawn);
    const index = codec === codecs.jpeg && spliced !== null ? cropIndex : null;
    if (index !== null && areApartCheaper(header, planned, reduction)) {
      const warnings = this.#decodeApart(bytes, header, index, planned, reduction, targets.views);
      return { warnings, isNarrowed };
    }
    const part = unionOf(planned.inputs);
    const stored = storedRect(part, header, planned.orientation);
    const crop = index && spliced!.decode(bytes, header, index, stored, reduction, scratch);
    const pixels = crop ?? codec.decodeRegion(bytes, stored, reduction, scratch);
    if (pixels instanceof Promise) {
      return pixels.then((decoded) => ({
        warnings: this.#finishAll(planned, part, decoded, targets.views),
        isNarrowed,
      }));
    }
    return { warnings: this.#finishAll(planned, part, pixels, targets.views), isNarrowed };
  }

  #plan(
    header: ImageHeader,
    { epoch, source, number, occurrence, orientation: packed }: SampleIdentity,
    drawn: Float32Array,
  ): { readonly planned: PlannedViews; readonly reduction: Reduction } {
    const { transforms, randomOf, draws, randoms, applyExifOrientation, decode } = this.#parts;
    const orientation = applyExifOrientation ? packed : UPRIGHT;
    const size = turnedSize(header, orientation);
    const random = randoms[source]!;
    const values = drawn.length / transforms.length;
    const full = transforms.map((transform, view) => {
      const steps = draws.length === 0 ? null : new DrawnSteps(size, draws);
      const start = () => random.start(epoch, number, occurrence, 0, randomOf[view]! + 1);
      random.start(epoch, number, occurrence);
      const plan = planSample(transform, size.width, size.height, random, null, { start, drawn: steps });
      if (steps !== null) drawn.set(steps.values, view * values);
      return plan;
    });
    const reduction =
      header.reducible && orientation === UPRIGHT
        ? (Math.min(...full.map((plan) => reductionOf(plan, decode))) as Reduction)
        : 1;
    const plans = full.map((plan) => reducedPlan(plan, size, reduction));
    return { planned: { plans, inputs: plans.map(({ passes }) => inputOf(passes[0]!)), orientation }, reduction };
  }

  /** Decodes the part of each view by itself. */
  #decodeApart(
    bytes: Uint8Array,
    header: ImageHeader,
    cropIndex: Uint8Array,
    { plans, inputs }: PlannedViews,
    reduction: Reduction,
    targets: readonly number[],
  ): number {
    const { codecs, scratch, spliced } = this.#parts;
    let warnings = 0;
    for (const [view, plan] of plans.entries()) {
      scratch.reset();
      const input = inputs[view]!;
      let pixels = spliced!.decode(bytes, header, cropIndex, input, reduction, scratch);
      if (pixels === null) {
        // The codec may still have the header of the small JPEG of the view before.
        codecs.jpeg.header(bytes);
        pixels = codecs.jpeg.decodeRegion(bytes, input, reduction, scratch) as Pixels;
      }
      warnings += pixels.warnings;
      this.#finish(view, plan, plan.passes, pixels, targets[view]!);
    }
    return warnings;
  }

  #finishAll(
    { plans, inputs, orientation }: PlannedViews,
    part: Rect,
    pixels: Pixels,
    targets: readonly number[],
  ): number {
    const { scratch } = this.#parts;
    const upright = orientation === UPRIGHT ? pixels : this.#turn(pixels, part, orientation);
    const { sharedPasses } = plans[0]!;
    const picture = sharedPasses === 0 ? null : this.#runShared(plans[0]!, upright);
    const mark = scratch.mark();
    for (const [view, plan] of plans.entries()) {
      const own = plan.passes.slice(sharedPasses);
      const bytes = this.#pixelBytes;
      const source =
        picture === null ? partOf(upright, part, inputs[view]!, bytes) : pictureAt(picture, inputOf(own[0]!), bytes);
      this.#finish(view, plan, own, source, targets[view]!);
      scratch.release(mark);
    }
    return pixels.warnings;
  }

  /** Runs the passes that all views share. */
  #runShared({ passes, sharedPasses }: SamplePlan, pixels: Pick<Pixels, 'offset' | 'stride'>): Picture {
    const { scratch, tools } = this.#parts;
    const shared = passes.slice(0, sharedPasses);
    const size = resultOf(shared.at(-1)!);
    const picture = this.#allocate(size);
    const mark = scratch.mark();
    inMemory(() => runPasses(shared, pixels, BYTES, tools[0]!, picture.address));
    scratch.release(mark);
    return picture;
  }

  #finish(
    view: number,
    plan: SamplePlan,
    passes: SamplePlan['passes'],
    source: Pick<Pixels, 'offset' | 'stride'>,
    target: number,
  ): void {
    const { tools: all, transforms } = this.#parts;
    const tools = all[view]!;
    const transform = transforms[view]!;
    inMemory(() => {
      runPasses(passes, source, transform, tools, target);
      const { effects, scratch, wide } = tools;
      if (wide !== null) wide.erase(plan.erased, plan, target);
      else if (effects && plan.erased.length > 0)
        eraseValues(plan.erased, plan, transform, { effects, scratch }, target);
    });
  }

  /** Bytes of a decoded pixel. */
  get #pixelBytes(): number {
    return pixelBytes(this.#parts.transforms[0]!.format);
  }

  #allocate({ width, height }: Size): Picture {
    const { scratch, tools } = this.#parts;
    if (tools[0]!.wide === null) return allocatePicture(scratch, { width, height });
    return { address: scratch.allocate(width * height * this.#pixelBytes), width, height };
  }

  #turn(stored: Pixels, size: Size, orientation: number): Pixels {
    const { scratch } = this.#parts;
    const bytes = this.#pixelBytes;
    const offset = scratch.allocate(size.width * size.height * bytes + SOURCE_SLACK_BYTES);
    turnPixels(scratch.memory, stored, size, orientation, offset, bytes);
    return { offset, stride: size.width * bytes, warnings: 0 };
  }
}

/** Whether it is predicted to be cheaper to decode the part of each view by itself. */
function areApartCheaper(
  header: ImageHeader,
  { plans, inputs, orientation }: PlannedViews,
  reduction: Reduction,
): boolean {
  if (orientation !== UPRIGHT || plans[0]!.sharedPasses > 0) return false;
  const apart = totalOf(inputs, (input) => cropCost(header, input, reduction));
  return apart < cropCost(header, unionOf(inputs), reduction);
}

/** The smallest rectangle that holds all of these. */
function unionOf(rects: readonly Rect[]): Rect {
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  const width = Math.max(...rects.map((rect) => rect.x + rect.width)) - x;
  const height = Math.max(...rects.map((rect) => rect.y + rect.height)) - y;
  return { x, y, width, height };
}

function partOf({ offset, stride }: Pick<Pixels, 'offset' | 'stride'>, part: Rect, { x, y }: Rect, bytes: number) {
  return { offset: offset + (y - part.y) * stride + (x - part.x) * bytes, stride };
}

function pictureAt({ address, width }: Picture, { x, y }: Rect, bytes: number): Pick<Pixels, 'offset' | 'stride'> {
  return { offset: address + (y * width + x) * bytes, stride: width * bytes };
}

/** A kernel without enough memory makes the sample a bad one. */
function inMemory(work: () => void): void {
  try {
    work();
  } catch (cause) {
    if (!(cause instanceof DecodeBufferError)) throw cause;
    throw new SampleDecodeError({}, cause.message, { cause });
  }
}
