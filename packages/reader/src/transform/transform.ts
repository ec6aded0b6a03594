import { OptionError } from '@shardtool/format';
import type { Normalization, PixelLayout } from '../kernels/resize.js';
import { resizedSize, type Size } from './crops.js';
import type { EffectStep, ErasingStep } from './effects.js';
import { parseSteps, type Step, type StepInput } from './steps.js';

export type { StepInput } from './steps.js';

/** Transforms by name: what ResNets are trained and validated with, uint8 [height, width, 3]. */
const PRESETS = {
  train224: [{ name: 'randomResizedCrop', size: 224 }, { name: 'randomHorizontalFlip' }],
  eval224: [
    { name: 'resize', size: 256 },
    { name: 'centerCrop', size: 224 },
  ],
} as const satisfies Record<string, readonly StepInput[]>;

export type PresetName = keyof typeof PRESETS;

/** The name of a preset, or a list of steps in the order in which they apply. */
export type TransformInput = PresetName | readonly StepInput[];

type ValueStep = Extract<Step, { readonly name: 'toDtype' | 'normalize' | 'layout' }>;
/** Steps that choose, resize and change pixels of bytes; the others say what values become. */
export type PixelStep = Exclude<Step, ValueStep>;
/** What values the images of a batch have. */
export type Dtype = 'uint8' | 'float32' | 'float16';

/** A transform that was checked: plain data, which can be sent to a worker. */
export interface CompiledTransform {
  readonly steps: readonly PixelStep[];
  /** What is erased of the finished values, behind normalize and toDtype. */
  readonly erasing: readonly ErasingStep[];
  /** The size of every result. Null where it follows from the image: `collate: 'list'` takes such images. */
  readonly outputShape: Size | null;
  readonly dtype: Dtype;
  /** `nhwc` [height, width, 3] or `nchw` [3, height, width]. */
  readonly layout: 'nhwc' | 'nchw';
  /** What the last pass writes: the finished values, or the bytes that floats are made of ({@link becomesFloatsLast}). */
  readonly pixelLayout: PixelLayout;
  /** What floats are made of. Null for uint8. */
  readonly normalization: Normalization | null;
}

/** Checks a transform and says what it makes. Throws {@link OptionError} that names the step and what is allowed. */
export function compileTransform(input: TransformInput): CompiledTransform {
  const steps = parseSteps(typeof input === 'string' ? preset(input) : input);
  const values = steps.findIndex(isValueStep);
  const pixelSteps = steps.slice(0, values < 0 ? steps.length : values);
  pixelSteps.forEach(checkErasing);
  return {
    steps: pixelSteps.filter((step) => !isValueStep(step)),
    outputShape: shapeOf(pixelSteps),
    ...valuesOf(steps, pixelSteps.length),
  };
}

/** Bytes of one value of a finished image. */
export function valueBytes(dtype: Dtype): number {
  return { uint8: 1, float16: 2, float32: 4 }[dtype];
}

/** Whether a step changes pixels where they are, which is more than to take and resize some. */
export function isEffect(step: PixelStep): step is EffectStep {
  switch (step.name) {
    case 'resize':
    case 'centerCrop':
    case 'randomCrop':
    case 'randomResizedCrop':
    case 'randomHorizontalFlip':
    case 'randomVerticalFlip':
      return false;
    default:
      return true;
  }
}

/** Whether more than the resize kernel is needed. */
export function hasEffects(transform: CompiledTransform): boolean {
  return transform.steps.some(isEffect) || transform.erasing.length > 0 || becomesFloatsLast(transform);
}

/** Whether the last pass leaves bytes that floats are made of: the resize kernel itself writes float32 [3, height, width]. */
export function becomesFloatsLast({ dtype, pixelLayout }: Pick<CompiledTransform, 'dtype' | 'pixelLayout'>): boolean {
  return dtype !== 'uint8' && pixelLayout === 'uint8-nhwc';
}

/** Where the images are bytes, what is erased becomes bytes. */
function checkErasing(step: Step, index: number): void {
  if (step.name !== 'randomErasing') return;
  const values = [step.value].flat();
  if (values.every((value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255)) return;
  throw new OptionError(
    {},
    `Step ${index + 1} of the transform, randomErasing, has the value ${JSON.stringify(step.value)}, which no byte can be: ` +
      'put it behind normalize or toDtype, or choose whole numbers from 0 to 255.',
  );
}

function preset(name: string): readonly StepInput[] {
  if (Object.hasOwn(PRESETS, name)) return PRESETS[name as PresetName];
  throw new OptionError(
    {},
    `There is no transform "${name}": give a list of steps, or ${Object.keys(PRESETS).join(' or ')}.`,
  );
}

function isValueStep(step: Step): step is ValueStep {
  return step.name === 'toDtype' || step.name === 'normalize' || step.name === 'layout';
}

/**
 * The size of every result. A resize by the shorter side gives one only where all images have one before; a rotation that
 * expands gives none.
 */
function shapeOf(steps: readonly Step[]): Size | null {
  let shape: Size | null = null;
  for (const step of steps) {
    if (step.name === 'randomRotation' && step.expand) shape = null;
    if (!('size' in step)) continue;
    if (typeof step.size !== 'number') shape = { height: step.size[0], width: step.size[1] };
    else if (step.name !== 'resize') shape = { height: step.size, width: step.size };
    else shape = resizedShape(shape, step.size, step.maxSize);
  }
  return shape;
}

function resizedShape(shape: Size | null, size: number, maxSize: number | undefined): Size | null {
  return shape && resizedSize(shape, size, maxSize);
}

/** What is done to bytes as the last thing: (byte / 255 - mean) / std, per channel; null where they stay bytes. */
export function normalizationOf(transform: TransformInput): Normalization | null {
  return compileTransform(transform).normalization;
}

type Values = Pick<CompiledTransform, 'dtype' | 'layout' | 'pixelLayout' | 'normalization' | 'erasing'>;

/** Goes through the steps from number `from` on: what values become, and what of them is erased. */
function valuesOf(steps: readonly Step[], from: number): Values {
  let dtype: Dtype = 'uint8';
  let scaled = true;
  let normalization: Normalization | null = null;
  let layout: 'nhwc' | 'nchw' | null = null;
  const erasing: ErasingStep[] = [];
  for (let i = from; i < steps.length; i++) {
    const step = steps[i]!;
    const wrong = (reason: string) => new OptionError({}, `Step ${i + 1} of the transform, ${step.name}, ${reason}.`);
    if (step.name === 'randomErasing') {
      if (dtype === 'uint8') checkErasing(step, i);
      erasing.push(step);
    } else if (!isValueStep(step)) throw wrong('must come before toDtype, normalize and layout');
    else if (step.name === 'layout') layout = step.layout;
    else if (step.name === 'toDtype' && step.dtype === 'float16' && dtype === 'float32') dtype = 'float16';
    else if (normalization !== null) throw wrong('cannot come after normalize');
    else if (erasing.length > 0) throw wrong('cannot come after a randomErasing of values: put it before');
    else if (step.name === 'toDtype') {
      if (step.dtype === 'uint8' && dtype !== 'uint8') throw wrong(`cannot turn ${dtype} back into uint8`);
      if (step.dtype !== 'uint8' && dtype === 'uint8') scaled = step.scale;
      dtype = step.dtype;
    } else {
      if (dtype === 'uint8') dtype = 'float32';
      normalization = { mean: step.mean, std: step.std };
    }
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

/** The kernel divides bytes by 255 first; where values were to stay 0 to 255, mean and std are smaller by as much. */
function ofBytes({ mean, std }: Normalization, scaled: boolean): Normalization {
  if (scaled) return { mean, std };
  return { mean: [mean[0] / 255, mean[1] / 255, mean[2] / 255], std: [std[0] / 255, std[1] / 255, std[2] / 255] };
}
