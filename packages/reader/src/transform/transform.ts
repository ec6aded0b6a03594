import { OptionError } from '@shardtool/format';
import type { Normalization, PixelLayout } from '../kernels/resize.js';
import { resizedSize, type Size } from './crops.js';
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

/** Steps that choose and resize pixels; the others say what values become. */
export type GeometricStep = Exclude<Step, { readonly name: 'toDtype' | 'normalize' | 'layout' }>;

/** A transform that was checked: plain data, which can be sent to a worker. */
export interface CompiledTransform {
  readonly steps: readonly GeometricStep[];
  /** The size of every result. Null where it follows from the image: `collate: 'list'` takes such images. */
  readonly outputShape: Size | null;
  readonly dtype: 'uint8' | 'float32';
  /** `nhwc` [height, width, 3] or `nchw` [3, height, width]. */
  readonly layout: 'nhwc' | 'nchw';
  readonly pixelLayout: PixelLayout;
  /** What float32 values are made of. Null for uint8. */
  readonly normalization: Normalization | null;
}

/** Checks a transform and says what it makes. Throws {@link OptionError} that names the step and what is allowed. */
export function compileTransform(input: TransformInput): CompiledTransform {
  const steps = parseSteps(typeof input === 'string' ? preset(input) : input);
  const values = steps.findIndex(isValueStep);
  const geometric = steps.slice(0, values < 0 ? steps.length : values);
  return {
    steps: geometric.filter((step) => !isValueStep(step)),
    outputShape: shapeOf(geometric),
    ...valuesOf(steps, geometric.length),
  };
}

function preset(name: string): readonly StepInput[] {
  if (Object.hasOwn(PRESETS, name)) return PRESETS[name as PresetName];
  throw new OptionError(
    {},
    `There is no transform "${name}": give a list of steps, or ${Object.keys(PRESETS).join(' or ')}.`,
  );
}

function isValueStep(step: Step): step is Exclude<Step, GeometricStep> {
  return step.name === 'toDtype' || step.name === 'normalize' || step.name === 'layout';
}

/** The size of every result. A resize by the shorter side gives one only where all images have one before. */
function shapeOf(steps: readonly Step[]): Size | null {
  let shape: Size | null = null;
  for (const step of steps) {
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

type Values = Pick<CompiledTransform, 'dtype' | 'layout' | 'pixelLayout' | 'normalization'>;

/** Goes through the steps from number `from` on, none of which may be geometric. */
function valuesOf(steps: readonly Step[], from: number): Values {
  let float = false;
  let scaled = true;
  let normalization: Normalization | null = null;
  let layout: 'nhwc' | 'nchw' | null = null;
  for (let i = from; i < steps.length; i++) {
    const step = steps[i]!;
    const wrong = (reason: string) => new OptionError({}, `Step ${i + 1} of the transform, ${step.name}, ${reason}.`);
    if (!isValueStep(step)) throw wrong('must come before toDtype, normalize and layout');
    if (step.name === 'layout') layout = step.layout;
    else if (normalization !== null) throw wrong('cannot come after normalize');
    else if (step.name === 'toDtype') {
      if (step.dtype === 'uint8' && float) throw wrong('cannot turn float32 back into uint8');
      if (step.dtype === 'float32' && !float) scaled = step.scale;
      float = step.dtype === 'float32';
    } else {
      float = true;
      normalization = { mean: step.mean, std: step.std };
    }
  }
  if (!float) {
    const chosen = layout ?? 'nhwc';
    return { dtype: 'uint8', layout: chosen, pixelLayout: `uint8-${chosen}`, normalization: null };
  }
  if (layout === 'nhwc')
    throw new OptionError({}, 'The transform makes float32 values, whose layout is nchw and not nhwc.');
  return {
    dtype: 'float32',
    layout: 'nchw',
    pixelLayout: 'float32-nchw',
    normalization: ofBytes(normalization ?? { mean: [0, 0, 0], std: [1, 1, 1] }, scaled),
  };
}

/** The kernel divides bytes by 255 first; where values were to stay 0 to 255, mean and std are smaller by as much. */
function ofBytes({ mean, std }: Normalization, scaled: boolean): Normalization {
  if (scaled) return { mean, std };
  return { mean: [mean[0] / 255, mean[1] / 255, mean[2] / 255], std: [std[0] / 255, std[1] / 255, std[2] / 255] };
}
