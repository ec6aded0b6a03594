/**
 * The policies of AutoAugment (Cubuk et al., arXiv 1805.09501), in the order of torchvision (transforms/autoaugment.py, `_get_policies`):
 * 25 pairs each.
 */
import type { Operation } from './operations.js';

type Choice = readonly [operation: Operation, probability: number, magnitude: number];
type Pair = readonly [Choice, Choice];

/** Two operations that are applied one after the other, each with its probability and its magnitude, 0 to 9. */
function pair(
  ...[first, probability, magnitude, second, otherProbability, otherMagnitude]: readonly [...Choice, ...Choice]
): Pair {
  return [
    [first, probability, magnitude],
    [second, otherProbability, otherMagnitude],
  ];
}

export const POLICIES: Readonly<Record<'imagenet' | 'cifar10' | 'svhn', readonly Pair[]>> = {
  imagenet: [
    pair('posterize', 0.4, 8, 'rotate', 0.6, 9),
    pair('solarize', 0.6, 5, 'autoContrast', 0.6, 0),
    pair('equalize', 0.8, 0, 'equalize', 0.6, 0),
    pair('posterize', 0.6, 7, 'posterize', 0.6, 6),
    pair('equalize', 0.4, 0, 'solarize', 0.2, 4),
    pair('equalize', 0.4, 0, 'rotate', 0.8, 8),
    pair('solarize', 0.6, 3, 'equalize', 0.6, 0),
    pair('posterize', 0.8, 5, 'equalize', 1, 0),
    pair('rotate', 0.2, 3, 'solarize', 0.6, 8),
    pair('equalize', 0.6, 0, 'posterize', 0.4, 6),
    pair('rotate', 0.8, 8, 'color', 0.4, 0),
    pair('rotate', 0.4, 9, 'equalize', 0.6, 0),
    pair('equalize', 0, 0, 'equalize', 0.8, 0),
    pair('invert', 0.6, 0, 'equalize', 1, 0),
    pair('color', 0.6, 4, 'contrast', 1, 8),
    pair('rotate', 0.8, 8, 'color', 1, 2),
    pair('color', 0.8, 8, 'solarize', 0.8, 7),
    pair('sharpness', 0.4, 7, 'invert', 0.6, 0),
    pair('shearX', 0.6, 5, 'equalize', 1, 0),
    pair('color', 0.4, 0, 'equalize', 0.6, 0),
    pair('equalize', 0.4, 0, 'solarize', 0.2, 4),
    pair('solarize', 0.6, 5, 'autoContrast', 0.6, 0),
    pair('invert', 0.6, 0, 'equalize', 1, 0),
    pair('color', 0.6, 4, 'contrast', 1, 8),
    pair('equalize', 0.8, 0, 'equalize', 0.6, 0),
  ],
  cifar10: [
    pair('invert', 0.1, 0, 'contrast', 0.2, 6),
    pair('rotate', 0.7, 2, 'translateX', 0.3, 9),
    pair('sharpness', 0.8, 1, 'sharpness', 0.9, 3),
    pair('shearY', 0.5, 8, 'translateY', 0.7, 9),
    pair('autoContrast', 0.5, 0, 'equalize', 0.9, 0),
    pair('shearY', 0.2, 7, 'posterize', 0.3, 7),
    pair('color', 0.4, 3, 'brightness', 0.6, 7),
    pair('sharpness', 0.3, 9, 'brightness', 0.7, 9),
    pair('equalize', 0.6, 0, 'equalize', 0.5, 0),
    pair('contrast', 0.6, 7, 'sharpness', 0.6, 5),
    pair('color', 0.7, 7, 'translateX', 0.5, 8),
    pair('equalize', 0.3, 0, 'autoContrast', 0.4, 0),
    pair('translateY', 0.4, 3, 'sharpness', 0.2, 6),
    pair('brightness', 0.9, 6, 'color', 0.2, 8),
    pair('solarize', 0.5, 2, 'invert', 0, 0),
    pair('equalize', 0.2, 0, 'autoContrast', 0.6, 0),
    pair('equalize', 0.2, 0, 'equalize', 0.6, 0),
    pair('color', 0.9, 9, 'equalize', 0.6, 0),
    pair('autoContrast', 0.8, 0, 'solarize', 0.2, 8),
    pair('brightness', 0.1, 3, 'color', 0.7, 0),
    pair('solarize', 0.4, 5, 'autoContrast', 0.9, 0),
    pair('translateY', 0.9, 9, 'translateY', 0.7, 9),
    pair('autoContrast', 0.9, 0, 'solarize', 0.8, 3),
    pair('equalize', 0.8, 0, 'invert', 0.1, 0),
    pair('translateY', 0.7, 9, 'autoContrast', 0.9, 0),
  ],
  svhn: [
    pair('shearX', 0.9, 4, 'invert', 0.2, 0),
    pair('shearY', 0.9, 8, 'invert', 0.7, 0),
    pair('equalize', 0.6, 0, 'solarize', 0.6, 6),
    pair('invert', 0.9, 0, 'equalize', 0.6, 0),
    pair('equalize', 0.6, 0, 'rotate', 0.9, 3),
    pair('shearX', 0.9, 4, 'autoContrast', 0.8, 0),
    pair('shearY', 0.9, 8, 'invert', 0.4, 0),
    pair('shearY', 0.9, 5, 'solarize', 0.2, 6),
    pair('invert', 0.9, 0, 'autoContrast', 0.8, 0),
    pair('equalize', 0.6, 0, 'rotate', 0.9, 3),
    pair('shearX', 0.9, 4, 'solarize', 0.3, 3),
    pair('shearY', 0.8, 8, 'invert', 0.7, 0),
    pair('equalize', 0.9, 0, 'translateY', 0.6, 6),
    pair('invert', 0.9, 0, 'equalize', 0.6, 0),
    pair('contrast', 0.3, 3, 'rotate', 0.8, 4),
    pair('invert', 0.8, 0, 'translateY', 0, 2),
    pair('shearY', 0.7, 6, 'solarize', 0.4, 8),
    pair('invert', 0.6, 0, 'rotate', 0.8, 4),
    pair('shearY', 0.3, 7, 'translateX', 0.9, 3),
    pair('shearX', 0.1, 6, 'invert', 0.6, 0),
    pair('solarize', 0.7, 2, 'translateY', 0.6, 7),
    pair('shearY', 0.8, 4, 'invert', 0.8, 0),
    pair('shearX', 0.7, 9, 'translateY', 0.8, 3),
    pair('shearY', 0.8, 5, 'autoContrast', 0.7, 0),
    pair('shearX', 0.7, 2, 'invert', 0.1, 0),
  ],
};
