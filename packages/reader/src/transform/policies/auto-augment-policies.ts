/**
 * The policies of AutoAugment (Cubuk et al., arXiv 1805.09501), as torchvision has them: 25 pairs of an operation, its probability and
 * its magnitude, 0 to 9.
 */
import type { Operation } from './operations.js';

type Choice = readonly [operation: Operation, probability: number, magnitude: number];

export const POLICIES: Readonly<Record<'imagenet' | 'cifar10' | 'svhn', readonly (readonly [Choice, Choice])[]>> = {
  imagenet: [
    [
      ['posterize', 0.4, 8],
      ['rotate', 0.6, 9],
    ],
    [
      ['solarize', 0.6, 5],
      ['autoContrast', 0.6, 0],
    ],
    [
      ['equalize', 0.8, 0],
      ['equalize', 0.6, 0],
    ],
    [
      ['posterize', 0.6, 7],
      ['posterize', 0.6, 6],
    ],
    [
      ['equalize', 0.4, 0],
      ['solarize', 0.2, 4],
    ],
    [
      ['equalize', 0.4, 0],
      ['rotate', 0.8, 8],
    ],
    [
      ['solarize', 0.6, 3],
      ['equalize', 0.6, 0],
    ],
    [
      ['posterize', 0.8, 5],
      ['equalize', 1, 0],
    ],
    [
      ['rotate', 0.2, 3],
      ['solarize', 0.6, 8],
    ],
    [
      ['equalize', 0.6, 0],
      ['posterize', 0.4, 6],
    ],
    [
      ['rotate', 0.8, 8],
      ['color', 0.4, 0],
    ],
    [
      ['rotate', 0.4, 9],
      ['equalize', 0.6, 0],
    ],
    [
      ['equalize', 0, 0],
      ['equalize', 0.8, 0],
    ],
    [
      ['invert', 0.6, 0],
      ['equalize', 1, 0],
    ],
    [
      ['color', 0.6, 4],
      ['contrast', 1, 8],
    ],
    [
      ['rotate', 0.8, 8],
      ['color', 1, 2],
    ],
    [
      ['color', 0.8, 8],
      ['solarize', 0.8, 7],
    ],
    [
      ['sharpness', 0.4, 7],
      ['invert', 0.6, 0],
    ],
    [
      ['shearX', 0.6, 5],
      ['equalize', 1, 0],
    ],
    [
      ['color', 0.4, 0],
      ['equalize', 0.6, 0],
    ],
    [
      ['equalize', 0.4, 0],
      ['solarize', 0.2, 4],
    ],
    [
      ['solarize', 0.6, 5],
      ['autoContrast', 0.6, 0],
    ],
    [
      ['invert', 0.6, 0],
      ['equalize', 1, 0],
    ],
    [
      ['color', 0.6, 4],
      ['contrast', 1, 8],
    ],
    [
      ['equalize', 0.8, 0],
      ['equalize', 0.6, 0],
    ],
  ],
  cifar10: [
    [
      ['invert', 0.1, 0],
      ['contrast', 0.2, 6],
    ],
    [
      ['rotate', 0.7, 2],
      ['translateX', 0.3, 9],
    ],
    [
      ['sharpness', 0.8, 1],
      ['sharpness', 0.9, 3],
    ],
    [
      ['shearY', 0.5, 8],
      ['translateY', 0.7, 9],
    ],
    [
      ['autoContrast', 0.5, 0],
      ['equalize', 0.9, 0],
    ],
    [
      ['shearY', 0.2, 7],
      ['posterize', 0.3, 7],
    ],
    [
      ['color', 0.4, 3],
      ['brightness', 0.6, 7],
    ],
    [
      ['sharpness', 0.3, 9],
      ['brightness', 0.7, 9],
    ],
    [
      ['equalize', 0.6, 0],
      ['equalize', 0.5, 0],
    ],
    [
      ['contrast', 0.6, 7],
      ['sharpness', 0.6, 5],
    ],
    [
      ['color', 0.7, 7],
      ['translateX', 0.5, 8],
    ],
    [
      ['equalize', 0.3, 0],
      ['autoContrast', 0.4, 0],
    ],
    [
      ['translateY', 0.4, 3],
      ['sharpness', 0.2, 6],
    ],
    [
      ['brightness', 0.9, 6],
      ['color', 0.2, 8],
    ],
    [
      ['solarize', 0.5, 2],
      ['invert', 0, 0],
    ],
    [
      ['equalize', 0.2, 0],
      ['autoContrast', 0.6, 0],
    ],
    [
      ['equalize', 0.2, 0],
      ['equalize', 0.6, 0],
    ],
    [
      ['color', 0.9, 9],
      ['equalize', 0.6, 0],
    ],
    [
      ['autoContrast', 0.8, 0],
      ['solarize', 0.2, 8],
    ],
    [
      ['brightness', 0.1, 3],
      ['color', 0.7, 0],
    ],
    [
      ['solarize', 0.4, 5],
      ['autoContrast', 0.9, 0],
    ],
    [
      ['translateY', 0.9, 9],
      ['translateY', 0.7, 9],
    ],
    [
      ['autoContrast', 0.9, 0],
      ['solarize', 0.8, 3],
    ],
    [
      ['equalize', 0.8, 0],
      ['invert', 0.1, 0],
    ],
    [
      ['translateY', 0.7, 9],
      ['autoContrast', 0.9, 0],
    ],
  ],
  svhn: [
    [
      ['shearX', 0.9, 4],
      ['invert', 0.2, 0],
    ],
    [
      ['shearY', 0.9, 8],
      ['invert', 0.7, 0],
    ],
    [
      ['equalize', 0.6, 0],
      ['solarize', 0.6, 6],
    ],
    [
      ['invert', 0.9, 0],
      ['equalize', 0.6, 0],
    ],
    [
      ['equalize', 0.6, 0],
      ['rotate', 0.9, 3],
    ],
    [
      ['shearX', 0.9, 4],
      ['autoContrast', 0.8, 0],
    ],
    [
      ['shearY', 0.9, 8],
      ['invert', 0.4, 0],
    ],
    [
      ['shearY', 0.9, 5],
      ['solarize', 0.2, 6],
    ],
    [
      ['invert', 0.9, 0],
      ['autoContrast', 0.8, 0],
    ],
    [
      ['equalize', 0.6, 0],
      ['rotate', 0.9, 3],
    ],
    [
      ['shearX', 0.9, 4],
      ['solarize', 0.3, 3],
    ],
    [
      ['shearY', 0.8, 8],
      ['invert', 0.7, 0],
    ],
    [
      ['equalize', 0.9, 0],
      ['translateY', 0.6, 6],
    ],
    [
      ['invert', 0.9, 0],
      ['equalize', 0.6, 0],
    ],
    [
      ['contrast', 0.3, 3],
      ['rotate', 0.8, 4],
    ],
    [
      ['invert', 0.8, 0],
      ['translateY', 0, 2],
    ],
    [
      ['shearY', 0.7, 6],
      ['solarize', 0.4, 8],
    ],
    [
      ['invert', 0.6, 0],
      ['rotate', 0.8, 4],
    ],
    [
      ['shearY', 0.3, 7],
      ['translateX', 0.9, 3],
    ],
    [
      ['shearX', 0.1, 6],
      ['invert', 0.6, 0],
    ],
    [
      ['solarize', 0.7, 2],
      ['translateY', 0.6, 7],
    ],
    [
      ['shearY', 0.8, 4],
      ['invert', 0.8, 0],
    ],
    [
      ['shearX', 0.7, 9],
      ['translateY', 0.8, 3],
    ],
    [
      ['shearY', 0.8, 5],
      ['autoContrast', 0.7, 0],
    ],
    [
      ['shearX', 0.7, 2],
      ['invert', 0.1, 0],
    ],
  ],
};
