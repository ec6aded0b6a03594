/** The parameters of steps that resize: how pixels are interpolated. */
import { FILTERS, type Filter } from '../../kernels/filters.js';
import { drawOne, type Random } from '../random.js';
import { INTERPOLATION, type Interpolation, SWITCH } from './kinds.js';
import { defaulted } from './parameter.js';

export const RESIZING = {
  interpolation: defaulted(
    INTERPOLATION,
    'bilinear',
    'Interpolation. If it is a list, each sample draws one of them. "random" is bilinear or bicubic.',
  ),
  antialias: defaulted(
    SWITCH,
    true,
    'If false, bilinear and bicubic do not average the pixels of an image that shrinks. Nearest never does.',
  ),
};

/** The checked parameters of {@link RESIZING}. */
interface Resizing {
  readonly interpolation: readonly Interpolation[];
  readonly antialias: boolean;
}

/** Which of the parameters cannot be combined, for the check of a step. */
export function checkResizing({ interpolation, antialias }: Resizing): { path: string; message: string } | undefined {
  const refused = antialias ? undefined : interpolation.find((one) => !(one in ALIASED));
  if (refused === undefined) return undefined;
  return { path: 'antialias', message: `must be true for the interpolation ${refused}` };
}

/** The filters without antialiasing. */
const ALIASED: Partial<Record<Interpolation, Filter>> = {
  nearest: 'nearest',
  'nearest-exact': 'nearest-exact',
  bilinear: 'bilinear-aliased',
  bicubic: 'bicubic-aliased',
};

/** Draws the filter. Takes one random number if there are several to draw from. */
export function drawFilter({ interpolation, antialias }: Resizing, random: Random): Filter {
  const chosen = interpolation.length === 1 ? interpolation[0]! : drawOne(interpolation, random);
  return antialias ? chosen : ALIASED[chosen]!;
}

/** The half width of the widest filter, in source pixels. */
export function widestFilter({ interpolation }: Pick<Resizing, 'interpolation'>): number {
  return Math.max(...interpolation.map((filter) => FILTERS[filter].halfWidth));
}
