import { didYouMean, OptionError, optionName, sentence } from '@shardtool/base';
import type { Size } from '../codec/codec.js';
import { type PixelFormat, RGB } from '../codec/pixel-format.js';
import { MAX_VIEWS } from '../transform/random.js';
import type { StepInput } from '../transform/step-inputs.js';
import { type CompiledTransform, compileSteps, parseShared, type TransformInput } from '../transform/transform.js';
import type { Dtype } from '../transform/values.js';

/** Views of each image that are made in the same way. */
export interface ViewInput {
  /** The steps, or the name of a preset. They must give all images one size. */
  readonly transform: TransformInput;
  /** Number of views that are made with it, each with its own random numbers. Default: 1. */
  readonly count?: number | undefined;
  /**
   * Name of a group before this one: each view takes the random numbers of the view with the same index there. Steps that are the same
   * from the start of both transforms then draw the same crop, flip and so on.
   */
  readonly follows?: string | undefined;
}

/**
 * Several views of each image, in named groups: `{ global: { count: 2, transform }, local: { count: 8, transform } }`. A list makes
 * a group of views with different transforms. `shared` are steps in front of all views, with the same random numbers for all of them.
 */
export interface ViewsInput {
  readonly shared?: readonly StepInput[] | undefined;
  readonly [group: string]: ViewInput | readonly ViewInput[] | readonly StepInput[] | undefined;
}

/** Views of one size, dtype and layout: one array of a batch. */
export interface ViewGroup {
  readonly name: string;
  /** Index of its first view, over all groups. */
  readonly first: number;
  readonly count: number;
  readonly size: Size;
  readonly channels: number;
  readonly dtype: Dtype;
  readonly layout: 'nhwc' | 'nchw';
}

/** The option `views`, checked. */
export interface CheckedViews {
  readonly groups: readonly [ViewGroup, ...ViewGroup[]];
  /** The transform of each view. */
  readonly transforms: readonly CompiledTransform[];
  /** For each view, the index of the view whose random numbers it has: its own, or that of the view that it follows. */
  readonly randomOf: readonly number[];
}

const EXAMPLE = '{ global: { count: 2, transform: [...] }, local: { count: 8, transform: [...] } }';
const KEYS = ['transform', 'count', 'follows'];

/** Checks the option `views`. Throws {@link OptionError} that names the group or the step, and what is allowed. */
export function checkViews(input: ViewsInput, format: PixelFormat = RGB): CheckedViews {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new OptionError({}, `The option views is ${JSON.stringify(input)}: write ${EXAMPLE}.`);
  }
  const { shared: sharedInput, ...named } = input;
  const shared = sharedInput === undefined ? [] : parseShared(sharedInput, 'views.shared', format);
  const groups: ViewGroup[] = [];
  const transforms: CompiledTransform[] = [];
  const randomOf: number[] = [];
  for (const [name, given] of Object.entries(named)) {
    if (given === undefined) continue;
    const isList = Array.isArray(given);
    const first = transforms.length;
    for (const [i, view] of [given as unknown].flat().entries()) {
      const place = isList ? `views.${name}[${i}]` : `views.${name}`;
      const { transform, count, follows } = checkView(view, place);
      const compiled = compileSteps(transform, { place, shared, format });
      const followed = follows === undefined ? null : followedGroup(follows, groups, place);
      const end = transforms.length + count;
      for (let index = transforms.length; index < end; index++) {
        if (followed !== null && index - first >= followed.count) throw followsTooFew(place, followed);
        randomOf.push(followed === null ? index : randomOf[followed.first + index - first]!);
      }
      transforms.push(...new Array<CompiledTransform>(count).fill(compiled));
      if (transforms.length > MAX_VIEWS)
        throw new OptionError({}, `views has more than ${MAX_VIEWS} views: remove some of them.`);
    }
    if (transforms.length === first)
      throw new OptionError({}, `views.${name} is an empty list: add a view, or remove it.`);
    groups.push(groupOf(name, first, transforms.slice(first), format));
  }
  const [group, ...others] = groups;
  if (group === undefined)
    throw new OptionError({}, sentence`The option ${optionName('views')} names no views: write ${EXAMPLE}.`);
  return { groups: [group, ...others], transforms, randomOf };
}

/** The group that a view at `place` follows. Throws {@link OptionError} if there is none of this name before it. */
function followedGroup(name: unknown, groups: readonly ViewGroup[], place: string): ViewGroup {
  const found = groups.find((group) => group.name === name);
  if (found !== undefined) return found;
  const names = groups.map((group) => group.name);
  const known = names.length === 0 ? 'there is none' : `there are ${names.join(', ')}`;
  throw new OptionError(
    {},
    `${place} follows ${JSON.stringify(name)}, which is not a group before it${didYouMean(String(name), names) || `: ${known}.`}`,
  );
}

function followsTooFew(place: string, { name, count }: ViewGroup): OptionError {
  const views = count === 1 ? 'one view' : `${count} views`;
  return new OptionError({}, `${place} has more views than the group that it follows: ${name} has ${views}.`);
}

function checkView(view: unknown, place: string): ViewInput & { readonly count: number } {
  if (typeof view !== 'object' || view === null || Array.isArray(view)) {
    throw new OptionError(
      {},
      `${place} is ${JSON.stringify(view)}: write { transform: [...] }, with a count if you like.`,
    );
  }
  const { transform, count = 1, follows } = view as Partial<ViewInput>;
  const unknown = Object.keys(view).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) {
    throw new OptionError(
      {},
      `${place} has no "${unknown}"${didYouMean(unknown, KEYS) || ': it has transform, count and follows.'}`,
    );
  }
  if (transform === undefined) throw new OptionError({}, `${place} has no transform: write { transform: [...] }.`);
  if (Number.isInteger(count) && count > 0) return { transform, count, follows };
  throw new OptionError(
    {},
    `${place} has a count of ${JSON.stringify(count)}: it must be a whole number of at least 1.`,
  );
}

/** The group of these transforms, which must give the same kind of array. */
function groupOf(
  name: string,
  first: number,
  transforms: readonly CompiledTransform[],
  { channels }: PixelFormat,
): ViewGroup {
  const [{ outputShape: size, dtype, layout }] = transforms as [CompiledTransform];
  for (const [i, other] of transforms.entries()) {
    const { outputShape } = other;
    if (size === null || outputShape === null) {
      throw new OptionError(
        {},
        sentence`View ${i} of views.${name} has images of several sizes: add a step with a size, such as randomResizedCrop, to its transform.`,
      );
    }
    if (outputShape.width !== size.width || outputShape.height !== size.height) {
      throw differs(name, i, `${outputShape.width}x${outputShape.height}`, `${size.width}x${size.height}`);
    }
    if (other.dtype !== dtype) throw differs(name, i, other.dtype, dtype);
    if (other.layout !== layout) throw differs(name, i, other.layout, layout);
  }
  return { name, first, count: transforms.length, size: size!, channels, dtype, layout };
}

function differs(name: string, view: number, is: string, others: string): OptionError {
  return new OptionError(
    {},
    `View ${view} of views.${name} is ${is}, but the views before it are ${others}. A group is one array: move the view to another group.`,
  );
}
