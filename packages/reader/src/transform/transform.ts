import { codeName, OptionError, optionName, sentence, withCodeNames } from '@shardtool/base';
import type { Size } from '../codec/codec.js';
import { fullScale, isRgb, type PixelFormat, RGB } from '../codec/pixel-format.js';
import type { Normalization, PixelLayout } from '../kernels/resize.js';
import { type ErasingStep, entryOf, everyStep, type PixelStep, parseSteps, type Step } from './parse-steps.js';
import { namedSteps, type PresetName, type TransformFile } from './presets.js';
import type { StepInput } from './step-inputs.js';
import { type Dtype, isFloat, type ValueSettings, valueBytes } from './values.js';
import { checkWideSteps } from './wide-steps.js';

export type { StepInput } from './step-inputs.js';

/** The name of a preset, a JSON file with a list of steps, or a list of steps in the order in which they are applied. */
export type TransformInput = PresetName | TransformFile | readonly StepInput[];

/** A checked transform: plain data that can be sent to a worker. */
export interface CompiledTransform {
  readonly steps: readonly PixelStep[];
  /** How images are decoded. */
  readonly format: PixelFormat;
  /** Number of the first steps that all views of an image share. Default: 0. */
  readonly shared?: number;
  /** Steps that erase finished values, after normalize and toDtype. */
  readonly erasing: readonly ErasingStep[];
  /** The common size of all results. Null if it depends on the image; then only `collate: 'list'` works. */
  readonly outputShape: Size | null;
  readonly dtype: Dtype;
  /** `nhwc` [height, width, channels] or `nchw` [channels, height, width]. */
  readonly layout: 'nhwc' | 'nchw';
  /** What the last pass writes: the finished values, or bytes that are then converted to floats ({@link becomesFloatsLast}). */
  readonly pixelLayout: PixelLayout;
  /** How decoded values are converted to floats: (value / full scale - mean) / std per channel. Null if they stay integers. */
  readonly normalization: Normalization | null;
}

/** Checks a transform and derives size, dtype and layout of its results. Throws {@link OptionError} that names the step and what is allowed. */
export function compileTransform(input: TransformInput, format: PixelFormat = RGB): CompiledTransform {
  return compileSteps(input, { place: 'the transform', shared: [], format });
}

/** Bytes of one pixel of a finished image. */
export function outputPixelBytes({ format, dtype }: Pick<CompiledTransform, 'format' | 'dtype'>): number {
  return format.channels * valueBytes(dtype);
}

/** Bytes of one decoded pixel. */
export function pixelBytes({ channels, dtype }: PixelFormat): number {
  return channels * valueBytes(dtype);
}

/** The steps that all views share: they crop, resize and change bytes. Throws {@link OptionError} for other steps. */
export function parseShared(input: unknown, place: string, format: PixelFormat = RGB): PixelStep[] {
  const steps = parseSteps(input, place, !isRgb(format));
  const last = steps.findIndex((step) => !isPixelStep(step));
  if (last >= 0) throw misplaced(steps[last]!, last, place, 'must be in the transform of each view');
  return steps.filter(isPixelStep);
}

/** {@link compileTransform} for a list at another place, for messages, after the steps that all views share. */
export function compileSteps(
  input: TransformInput,
  {
    place,
    shared,
    format = RGB,
  }: { readonly place: string; readonly shared: readonly PixelStep[]; readonly format?: PixelFormat },
): CompiledTransform {
  const steps = parseSteps(typeof input === 'string' ? namedSteps(input) : input, place, !isRgb(format));
  if (!isRgb(format)) checkWideSteps(steps, format, place);
  const values = steps.findIndex((step) => !isPixelStep(step));
  const pixelSteps = steps.slice(0, values < 0 ? steps.length : values).filter(isPixelStep);
  pixelSteps.forEach((step, i) => {
    for (const inner of everyStep([step])) {
      const reason = entryOf(inner).refusesPixels?.(inner, format.dtype);
      if (reason !== undefined) throw misplaced(inner, i, place, reason);
    }
  });
  const all = [...shared, ...pixelSteps];
  const { length } = pixelSteps;
  return {
    steps: all,
    format,
    shared: shared.length,
    outputShape: shapeOf(all),
    ...valuesOf(steps, length, place, format),
  };
}

/**
 * The same transform after a `cover` of each of these sizes. Throws {@link OptionError} if one of its steps sets a size.
 */
export function coverTransforms(
  transform: CompiledTransform,
  sizes: readonly Size[],
  crop: 'center' | 'random',
): CompiledTransform[] {
  const any = { width: 1, height: 1 };
  const sized = transform.steps.find((step) => shapeOf([step], any) !== any);
  if (sized !== undefined) {
    throw new OptionError(
      {},
      sentence`The step ${codeName(sized.name)} sets the size of images, and so does the option ${optionName('aspectBuckets')}: remove the step from the transform, or remove ${optionName('aspectBuckets')}.`,
    );
  }
  return sizes.map(({ width, height }) => ({
    ...transform,
    steps: [...parseSteps([{ name: 'cover', size: [height, width], crop }]).filter(isPixelStep), ...transform.steps],
    outputShape: { width, height },
  }));
}

/** Whether a transform needs more than the resize kernel. */
export function hasEffects(transform: CompiledTransform): boolean {
  if (!isRgb(transform.format)) return false;
  return (
    everyStep(transform.steps).some((step) => entryOf(step).isEffect) ||
    transform.erasing.length > 0 ||
    becomesFloatsLast(transform)
  );
}

/** Whether bytes are converted to floats after the last pass. The resize kernel itself can only write float32 [3, height, width]. */
export function becomesFloatsLast({ dtype, pixelLayout }: Pick<CompiledTransform, 'dtype' | 'pixelLayout'>): boolean {
  return dtype !== 'uint8' && pixelLayout === 'uint8-nhwc';
}

function isPixelStep(step: Step): step is PixelStep {
  return entryOf(step).draw !== undefined;
}

function misplaced(step: Step, index: number, place: string, reason: string): OptionError {
  return new OptionError(
    {},
    sentence`Step ${index + 1} of ${place}, ${codeName(step.name)}, ${withCodeNames(reason)}.`,
  );
}

/** The common size of all results. Null if sizes differ. */
function shapeOf(steps: readonly unknown[], before: Size | null = null): Size | null {
  return (steps as readonly Step[]).reduce<Size | null>((shape, step) => {
    const { shape: shapeAfter } = entryOf(step);
    return shapeAfter === undefined ? shape : shapeAfter(step, shape, shapeOf);
  }, before);
}

/** Dtype, layout and normalization of the results of a transform. */
export type TransformOutput = Pick<CompiledTransform, 'dtype' | 'layout' | 'normalization'>;

/**
 * Dtype, layout and normalization of the results of a transform. The normalization is the last operation on bytes: (byte / 255 - mean)
 * / std per channel. It is null if results stay bytes. Throws OptionError if the transform is invalid.
 */
export function outputOf(transform: TransformInput): TransformOutput {
  return compileTransform(transform);
}

type Values = Pick<CompiledTransform, 'dtype' | 'layout' | 'pixelLayout' | 'normalization' | 'erasing'>;

/** Applies the steps from index `from` on, which set dtype, normalization and layout or erase finished values. */
function valuesOf(steps: readonly Step[], from: number, place: string, format: PixelFormat): Values {
  const { dtype: stored } = format;
  const values: ValueSettings = { dtype: stored, stored, scaled: true, normalization: null, layout: null, erasing: [] };
  steps.slice(from).forEach((step, i) => {
    const reason = settle(step, values);
    if (reason !== undefined) throw misplaced(step, from + i, place, reason);
  });
  const { dtype, scaled, normalization, layout, erasing } = values;
  if (!isRgb(format)) {
    const floats = isFloat(dtype);
    return {
      dtype,
      layout: layout ?? (floats ? 'nchw' : 'nhwc'),
      pixelLayout: 'uint8-nhwc',
      normalization: floats ? wideNormalization(normalization, scaled, format) : null,
      erasing,
    };
  }
  if (dtype === 'uint8') {
    const chosen = layout ?? 'nhwc';
    return { dtype, layout: chosen, pixelLayout: `uint8-${chosen}`, normalization: null, erasing };
  }
  const chosen = layout ?? 'nchw';
  return {
    dtype,
    layout: chosen,
    pixelLayout: dtype === 'float32' && chosen === 'nchw' ? 'float32-nchw' : 'uint8-nhwc',
    normalization: ofBytes(normalization ?? { mean: [0, 0, 0], std: [1, 1, 1] }, scaled),
    erasing,
  };
}

/** Applies a step that comes after the first value step. If the step is not allowed there, returns the reason. */
function settle(step: Step, values: ValueSettings): string | undefined {
  const entry = entryOf(step);
  if (entry.settle !== undefined) return entry.settle(step, values);
  if (step.name !== 'randomErasing') return 'must come before toDtype, normalize and layout';
  values.erasing.push(step);
  return isFloat(values.dtype) ? undefined : entry.refusesPixels?.(step, values.stored);
}

/** The normalization of values that are divided by the {@link fullScale} of their dtype first, with a number per channel. */
function wideNormalization(
  given: Normalization | null,
  scaled: boolean,
  { channels, dtype }: PixelFormat,
): Normalization {
  const each = (values: readonly number[]) =>
    values.length === channels ? values : new Array<number>(channels).fill(values[0]!);
  const { mean, std } = given ?? { mean: [0], std: [1] };
  const unit = scaled ? 1 : fullScale(dtype);
  return { mean: each(mean).map((value) => value / unit), std: each(std).map((value) => value / unit) };
}

/** Adapts mean and std to the kernel, which divides bytes by 255 first. For values from 0 to 255 they are divided by 255 too. */
function ofBytes({ mean, std }: Normalization, scaled: boolean): Normalization {
  if (scaled) return { mean, std };
  return { mean: mean.map((value) => value / 255), std: std.map((value) => value / 255) };
}
