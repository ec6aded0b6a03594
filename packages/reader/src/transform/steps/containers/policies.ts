/** Policies: steps that draw which operations they apply. */

import { beta, dirichlet } from '../../distributions.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { BINS, COLOUR, COUNT, oneOf, POSITIVE, SWITCH, UP_TO_100, type Zod } from '../../parameters/kinds.js';
import { defaulted, optional } from '../../parameters/parameter.js';
import { POLICIES } from '../../policies/auto-augment-policies.js';
import {
  AUGMIX,
  AUGMIX_OPERATIONS,
  applyOperation,
  hasMagnitude,
  isSigned,
  magnitudeOf,
  NORMAL,
  OPERATIONS,
  type Operation,
  operationEffect,
  WIDE,
} from '../../policies/operations.js';
import { drawOne, integerBelow, type Random } from '../../random.js';
import { step } from '../step.js';
import { CHAIN_PICTURES, MIXED_GEOMETRY } from './mix-chains.js';

const AFFINE_FILTER = oneOf('nearest', 'bilinear', 'bicubic');
const LOOK = {
  interpolation: defaulted(
    AFFINE_FILTER,
    'nearest',
    'Interpolation of shear, translation and rotation. Bicubic uses the same filter as Pillow.',
  ),
  fill: optional(COLOUR, 'Value of the pixels outside the image. Default: black.'),
  p: ALWAYS,
};
const BINS_HELP = 'Number of magnitude bins.';
const TOLERANCE =
  'within 1 level of tensors for each operation. With `nearest`, a position exactly between two pixels may take the other pixel';

/** For each operation, draws which it is and, if it has a sign, the sign (v2.RandAugment `forward`). */
export const randAugment = step(
  'randAugment',
  {
    help: 'Applies random operations of equal magnitude.',
    like: 'RandAugment',
    tolerance: TOLERANCE,
    parameters: {
      numOps: defaulted(UP_TO_100, 2, 'Number of operations.'),
      magnitude: defaulted(UP_TO_100, 9, 'Number of the magnitude bin, from 0.'),
      numMagnitudeBins: defaulted(BINS, 31, BINS_HELP),
      ...LOOK,
    },
  },
  {
    isEffect: true,
    check: ({ magnitude, numMagnitudeBins }) =>
      magnitude < numMagnitudeBins ? undefined : { path: 'magnitude', message: 'must be less than numMagnitudeBins' },
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      for (let i = 0; i < step.numOps; i++) {
        const operation = drawOne(OPERATIONS, random);
        const magnitude = magnitudeOf(operation, NORMAL, step.magnitude, step.numMagnitudeBins, canvas.size);
        applyOperation(operation, withSign(operation, magnitude, random), canvas, step);
      }
    },
  },
);

/** Draws the operation and, if it has them, its magnitude and its sign (v2.TrivialAugmentWide `forward`). */
export const trivialAugmentWide = step(
  'trivialAugmentWide',
  {
    help: 'Applies one random operation of random magnitude.',
    like: 'TrivialAugmentWide',
    tolerance: TOLERANCE,
    parameters: { numMagnitudeBins: defaulted(BINS, 31, BINS_HELP), ...LOOK },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const operation = drawOne(OPERATIONS, random);
      const bin = hasMagnitude(operation) ? integerBelow(step.numMagnitudeBins, random) : 0;
      const magnitude = magnitudeOf(operation, WIDE, bin, step.numMagnitudeBins, canvas.size);
      applyOperation(operation, withSign(operation, magnitude, random), canvas, step);
    },
  },
);

/** Draws five random numbers: the pair of operations, whether each of them applies, and their signs (v2.AutoAugment `forward`). */
export const autoAugment = step(
  'autoAugment',
  {
    help: 'Applies a random pair of operations of a learned policy.',
    like: 'AutoAugment',
    tolerance: TOLERANCE,
    parameters: { policy: defaulted(oneOf('imagenet', 'cifar10', 'svhn'), 'imagenet', 'The policy.'), ...LOOK },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const pair = drawOne(POLICIES[step.policy], random);
      const chances = [random.next(), random.next()];
      const signs = [random.next(), random.next()];
      pair.forEach(([operation, probability, bin], i) => {
        if (chances[i]! >= probability) return;
        const magnitude = magnitudeOf(operation, NORMAL, bin, 10, canvas.size);
        const isNegative = isSigned(operation) && signs[i]! < 0.5;
        applyOperation(operation, isNegative ? -magnitude : magnitude, canvas, step);
      });
    },
  },
);

const SEVERITY = { ...BINS, check: (z: Zod) => z.number().int().min(1).max(10), takes: '1 to 10' };

/**
 * Draws the share of the chains (Beta), then their weights (Dirichlet), then for each chain its depth, unless it is set, and its
 * operations with their magnitudes and signs (v2.AugMix `forward`).
 */
export const augMix = step(
  'augMix',
  {
    help: 'Mixes the image with several chains of random operations on it.',
    like: 'AugMix',
    tolerance: TOLERANCE,
    parameters: {
      severity: defaulted(SEVERITY, 3, 'Number of magnitudes to draw from, of 10.'),
      mixtureWidth: defaulted(COUNT, 3, 'Number of chains.'),
      chainDepth: defaulted(
        { ...COUNT, check: (z: Zod) => z.number().int().min(-1).max(100), takes: '-1 to 100' },
        -1,
        'Number of operations of a chain. 0 or -1: 1 to 3, drawn for each chain.',
      ),
      alpha: defaulted(POSITIVE, 1, 'Parameter of the Beta and Dirichlet distributions of the weights.'),
      allOps: defaulted(SWITCH, true, 'Includes brightness, color, contrast and sharpness.'),
      ...LOOK,
      interpolation: { ...LOOK.interpolation, ...defaulted(AFFINE_FILTER, 'bilinear', LOOK.interpolation.help) },
    },
  },
  {
    isEffect: true,
    extraPictures: CHAIN_PICTURES,
    refusesAnnotations: () => MIXED_GEOMETRY,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const share = beta(step.alpha, random);
      const weights = dirichlet(step.alpha, step.mixtureWidth, random);
      const operations = step.allOps ? AUGMIX_OPERATIONS : AUGMIX_OPERATIONS.slice(0, -4);
      const { size } = canvas;
      const chains = weights.map((weight) => {
        const depth = step.chainDepth > 0 ? step.chainDepth : 1 + integerBelow(3, random);
        const effects = Array.from({ length: depth }, () => {
          const operation = drawOne(operations, random);
          const bin = hasMagnitude(operation) ? integerBelow(step.severity, random) : 0;
          const magnitude = magnitudeOf(operation, AUGMIX, bin, 10, size);
          return operationEffect(operation, withSign(operation, magnitude, random), size, step);
        });
        return { weight: weight * (1 - share), effects: effects.filter((effect) => effect !== null) };
      });
      canvas.applyEffects([{ kind: 'mixChains', own: share, chains, part: 1 }]);
    },
  },
);

/** Draws which of three effects applies, then the radius if it is a blur. The arithmetic is that of Pillow, as in DeiT. */
export const threeAugment = step(
  'threeAugment',
  {
    help: 'Converts the image to grayscale, solarizes it at 128, or blurs it, each with the same probability (DeiT III).',
    like: null,
    tolerance: 'within 1 level of Pillow',
    parameters: { p: ALWAYS },
  },
  {
    isEffect: true,
    draw: ({ p }, canvas, random) => {
      if (!applies(p, random)) return;
      const which = integerBelow(3, random);
      if (which === 0) canvas.applyEffects([{ kind: 'saturation', factor: 0, isPillow: true }]);
      else if (which === 1) canvas.applyEffects([{ kind: 'solarize', threshold: 128 }]);
      else canvas.applyEffects([{ kind: 'pillowBlur', sigma: 0.1 + 1.9 * random.next() }]);
    },
  },
);

function withSign(operation: Operation, magnitude: number, random: Random): number {
  return isSigned(operation) && random.next() < 0.5 ? -magnitude : magnitude;
}
