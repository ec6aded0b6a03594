/** timm's policies of augmentation, by the strings that name them. */
import { total } from '@shardtool/base';
import type { Canvas } from '../../canvas.js';
import { beta, dirichlet } from '../../distributions.js';
import { type Effect, rgb } from '../../effects.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { COLOUR, oneOf, PART, TIMM_CONFIG } from '../../parameters/kinds.js';
import { defaulted, needed, optional } from '../../parameters/parameter.js';
import type { AugMixPolicy, RandPolicy } from '../../policies/timm-config.js';
import { applyTimmEffect, drawTimmOperation, type TimmLook } from '../../policies/timm-operations.js';
import type { TimmOperation } from '../../policies/timm-policies.js';
import { drawOne, integerBelow, type Random } from '../../random.js';
import { step } from '../step.js';
import { CHAIN_PICTURES, MIXED_GEOMETRY } from './mix-chains.js';

/** The mean of ImageNet, with which timm's `create_transform` fills. */
const IMAGENET_MEAN = [124, 116, 104] as const;
/** The largest magnitude of policies that do not set one. */
const LIMIT = 10;

/**
 * `rand` draws all of its operations first, then what each of them draws (see drawTimmOperation). A listed policy draws the list, then
 * what each operation draws. `augmix` draws the weights of the chains (Dirichlet), the share of the mixture (Beta), and for each chain
 * its depth, unless it is set, its operations, and what each of them draws.
 */
export const timmAugment = step(
  'timmAugment',
  {
    help: 'Applies a policy of timm, which is named as there: rand-m9-mstd0.5-inc1, original-mstd0.5, v0, 3a, augmix-m3-w3.',
    like: null,
    tolerance: 'each operation within 1 level of Pillow',
    parameters: {
      config: needed(
        TIMM_CONFIG,
        'The policy: rand, augmix, original, originalr, v0, v0r or 3a. Then, for rand: m, n, p, mstd, mmax, inc and t; for augmix: m, w, d, a, b and mstd; for the others: mstd.',
      ),
      interpolation: defaulted(
        oneOf('bilinear', 'bicubic', 'random'),
        'random',
        'Interpolation of shear, translation and rotation. "random" draws bilinear or bicubic for each operation.',
      ),
      fill: defaulted(COLOUR, IMAGENET_MEAN, 'Value of the pixels outside the image.'),
      translatePct: optional(
        PART,
        'Translation at magnitude 10, as a part of the side of the image. Default: 0.45, and 0.3 for augmix, as in create_transform.',
      ),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    extraPictures: CHAIN_PICTURES,
    refusesAnnotations: ({ config }) => (config.kind === 'augmix' ? MIXED_GEOMETRY : undefined),
    draw: ({ config, interpolation, fill, translatePct, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const look: TimmLook = {
        interpolation: interpolation === 'random' ? ['bilinear', 'bicubic'] : [interpolation],
        fill: rgb(fill),
        translatePct: translatePct ?? (config.kind === 'augmix' ? 0.3 : 0.45),
      };
      if (config.kind === 'augmix') {
        drawChains(config, look, canvas, random);
        return;
      }
      if (config.kind === 'rand') {
        for (const operation of drawOperations(config, random)) {
          applyTimmEffect(drawTimmOperation(operation, config, look, canvas.size, random), canvas);
        }
        return;
      }
      for (const [operation, probability, magnitude] of drawOne(config.lists, random)) {
        const strength = { probability, magnitude, noise: config.noise, limit: LIMIT };
        applyTimmEffect(drawTimmOperation(operation, strength, look, canvas.size, random), canvas);
      }
    },
  },
);

/** Draws operations with replacement, or by their weights without. Takes one random number for each. */
function drawOperations({ operations, weights, layers }: RandPolicy, random: Random): readonly TimmOperation[] {
  if (weights === null) return Array.from({ length: layers }, () => drawOne(operations, random));
  const left = [...weights];
  return Array.from({ length: layers }, () => {
    let rest = random.next() * total(left);
    let chosen = left.findIndex((weight) => {
      rest -= weight;
      return rest < 0;
    });
    // Rounding may leave a rest at the end.
    if (chosen < 0) chosen = left.findLastIndex((weight) => weight > 0);
    left[chosen] = 0;
    return operations[chosen]!;
  });
}

function drawChains(policy: AugMixPolicy, look: TimmLook, canvas: Canvas, random: Random): void {
  const weights = dirichlet(policy.alpha, policy.width, random);
  const share = beta(policy.alpha, random);
  const strength = { probability: 1, magnitude: policy.magnitude, noise: policy.noise, limit: LIMIT };
  const chains = weights.map((weight) => {
    const depth = policy.depth > 0 ? policy.depth : 1 + integerBelow(3, random);
    const operations = Array.from({ length: depth }, () => drawOne(policy.operations, random));
    const effects = operations
      .map((operation) => drawTimmOperation(operation, strength, look, canvas.size, random))
      .filter((effect): effect is Effect => effect !== null);
    return { weight, effects };
  });
  if (!policy.isBlended) {
    canvas.applyEffects([{ kind: 'mixChains', own: 0, chains, part: share }]);
    return;
  }
  // timm blends one chain after the other into the image, with the factors that give these weights.
  const scaled = chains.map(({ weight, effects }) => ({ weight: weight * share, effects }));
  canvas.applyEffects([{ kind: 'mixChains', own: 1 - share, chains: scaled, part: 1 }]);
}
