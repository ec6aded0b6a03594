import { total } from '@shardtool/base';
import type { Size } from '../../../codec/codec.js';
/** Steps that contain other steps. `transforms` is a list of lists, which the parser makes from what the user wrote. */
import { ALWAYS, applies, HALF_THE_TIME, shapeWithChance } from '../../parameters/chance.js';
import { STEP_LISTS, WEIGHTS } from '../../parameters/kinds.js';
import { needed, optional } from '../../parameters/parameter.js';
import { shuffled } from '../../random.js';
import { step } from '../step.js';

/** Draws one random number for p, then the random numbers of the steps. */
export const randomApply = step(
  'randomApply',
  {
    help: 'Applies all of its steps, or none of them.',
    like: 'RandomApply',
    tolerance: 'as its steps',
    parameters: { transforms: needed(STEP_LISTS, 'Steps, or lists of steps.'), p: HALF_THE_TIME },
  },
  {
    nested: ({ transforms }) => transforms,
    draw: ({ transforms, p }, canvas, random, drawSteps) => {
      if (random.next() < p) drawSteps(transforms.flat(), canvas, random);
    },
    shape: ({ transforms, p }, before, shapeAfter) => shapeWithChance(p, before, shapeAfter(transforms.flat(), before)),
  },
);

/** Draws one random number for the choice, then the random numbers of its steps. */
export const randomChoice = step(
  'randomChoice',
  {
    help: 'Applies one of its steps or lists of steps.',
    like: 'RandomChoice',
    tolerance: 'as its steps',
    parameters: {
      transforms: needed(
        STEP_LISTS,
        'Steps or lists of steps to draw from, at least one. The item [] changes nothing.',
      ),
      p: optional(WEIGHTS, 'Weights, one for each item. Default: equal.'),
    },
  },
  {
    check: ({ transforms, p }) => {
      if (transforms.length === 0) return { path: 'transforms', message: 'must have at least one item' };
      if (p === undefined) return;
      if (p.length !== transforms.length) return { path: 'p', message: `must have ${transforms.length} weights` };
      return p.some((weight) => weight > 0) ? undefined : { path: 'p', message: 'must have a weight above 0' };
    },
    nested: ({ transforms }) => transforms,
    draw: ({ transforms, p }, canvas, random, drawSteps) => {
      drawSteps(transforms[drawWeighted(p ?? transforms.map(() => 1), random.next())]!, canvas, random);
    },
    shape: ({ transforms }, before, shapeAfter) => common(transforms.map((steps) => shapeAfter(steps, before))),
  },
);

/** For n items, draws n - 1 random numbers for their order, then the random numbers of the items. */
export const randomOrder = step(
  'randomOrder',
  {
    help: 'Applies all of its steps or lists of steps in a random order.',
    like: 'RandomOrder',
    tolerance: 'as its steps',
    parameters: { transforms: needed(STEP_LISTS, 'Steps or lists of steps.'), p: ALWAYS },
  },
  {
    nested: ({ transforms }) => transforms,
    draw: ({ transforms, p }, canvas, random, drawSteps) => {
      if (!applies(p, random)) return;
      for (const steps of shuffled(transforms, random)) drawSteps(steps, canvas, random);
    },
    shape: ({ transforms }, before, shapeAfter) =>
      common([before, ...transforms.map((steps) => shapeAfter(steps, before))]),
  },
);

/** The index of a weight, for a random number from 0 to 1. */
function drawWeighted(weights: readonly number[], drawn: number): number {
  let rest = drawn * total(weights);
  const index = weights.findIndex((weight) => {
    rest -= weight;
    return rest < 0;
  });
  return index < 0 ? weights.findLastIndex((weight) => weight > 0) : index;
}

/** The size that all of them have. Null if sizes differ. */
function common(sizes: readonly (Size | null)[]): Size | null {
  const [first = null, ...others] = sizes;
  return others.every((size) => size?.width === first?.width && size?.height === first?.height) ? first : null;
}
