/**
 * The operations and policies of timm 1.0 (data/auto_augment.py), in its order. `original` and `v0` are 25 pairs of operations, each with
 * its probability and its magnitude.
 */
export type TimmOperation =
  | 'AutoContrast'
  | 'Equalize'
  | 'Invert'
  | 'Rotate'
  | 'Posterize'
  | 'PosterizeIncreasing'
  | 'PosterizeOriginal'
  | 'Solarize'
  | 'SolarizeIncreasing'
  | 'SolarizeAdd'
  | 'Color'
  | 'ColorIncreasing'
  | 'Contrast'
  | 'ContrastIncreasing'
  | 'Brightness'
  | 'BrightnessIncreasing'
  | 'Sharpness'
  | 'SharpnessIncreasing'
  | 'ShearX'
  | 'ShearY'
  | 'TranslateXRel'
  | 'TranslateYRel'
  | 'Desaturate'
  | 'GaussianBlur'
  | 'GaussianBlurRand';

/** An operation of a listed policy, with its probability and its magnitude. */
export type TimmChoice = readonly [operation: TimmOperation, probability: number, magnitude: number];

/** The sets of operations that `rand` and `augmix` draw from. A set with numbers has weights. */
export const TIMM_SETS = {
  rand: [
    'AutoContrast',
    'Equalize',
    'Invert',
    'Rotate',
    'Posterize',
    'Solarize',
    'SolarizeAdd',
    'Color',
    'Contrast',
    'Brightness',
    'Sharpness',
    'ShearX',
    'ShearY',
    'TranslateXRel',
    'TranslateYRel',
  ],
  increasing: [
    'AutoContrast',
    'Equalize',
    'Invert',
    'Rotate',
    'PosterizeIncreasing',
    'SolarizeIncreasing',
    'SolarizeAdd',
    'ColorIncreasing',
    'ContrastIncreasing',
    'BrightnessIncreasing',
    'SharpnessIncreasing',
    'ShearX',
    'ShearY',
    'TranslateXRel',
    'TranslateYRel',
  ],
  threeA: ['SolarizeIncreasing', 'Desaturate', 'GaussianBlur'],
  weighted3a: {
    SolarizeIncreasing: 6,
    Desaturate: 6,
    GaussianBlur: 6,
    Rotate: 3,
    ShearX: 2,
    ShearY: 2,
    PosterizeIncreasing: 1,
    AutoContrast: 1,
    ColorIncreasing: 1,
    SharpnessIncreasing: 1,
    ContrastIncreasing: 1,
    BrightnessIncreasing: 1,
    Equalize: 1,
    Invert: 1,
  },
  weighted: {
    Rotate: 3,
    ShearX: 2,
    ShearY: 2,
    TranslateXRel: 1,
    TranslateYRel: 1,
    ColorIncreasing: 0.25,
    SharpnessIncreasing: 0.25,
    AutoContrast: 0.25,
    SolarizeIncreasing: 0.05,
    SolarizeAdd: 0.05,
    ContrastIncreasing: 0.05,
    BrightnessIncreasing: 0.05,
    Equalize: 0.05,
    PosterizeIncreasing: 0.05,
    Invert: 0.05,
  },
  augmix: [
    'AutoContrast',
    'ColorIncreasing',
    'ContrastIncreasing',
    'BrightnessIncreasing',
    'SharpnessIncreasing',
    'Equalize',
    'Rotate',
    'PosterizeIncreasing',
    'SolarizeIncreasing',
    'ShearX',
    'ShearY',
    'TranslateXRel',
    'TranslateYRel',
  ],
} as const satisfies Record<string, readonly TimmOperation[] | Partial<Record<TimmOperation, number>>>;

/** Two operations, each with its probability and its magnitude. */
function pair(
  ...[first, probability, magnitude, second, otherProbability, otherMagnitude]: readonly [...TimmChoice, ...TimmChoice]
): readonly TimmChoice[] {
  return [
    [first, probability, magnitude],
    [second, otherProbability, otherMagnitude],
  ];
}

const ORIGINAL: readonly (readonly TimmChoice[])[] = [
  pair('PosterizeOriginal', 0.4, 8, 'Rotate', 0.6, 9),
  pair('Solarize', 0.6, 5, 'AutoContrast', 0.6, 5),
  pair('Equalize', 0.8, 8, 'Equalize', 0.6, 3),
  pair('PosterizeOriginal', 0.6, 7, 'PosterizeOriginal', 0.6, 6),
  pair('Equalize', 0.4, 7, 'Solarize', 0.2, 4),
  pair('Equalize', 0.4, 4, 'Rotate', 0.8, 8),
  pair('Solarize', 0.6, 3, 'Equalize', 0.6, 7),
  pair('PosterizeOriginal', 0.8, 5, 'Equalize', 1, 2),
  pair('Rotate', 0.2, 3, 'Solarize', 0.6, 8),
  pair('Equalize', 0.6, 8, 'PosterizeOriginal', 0.4, 6),
  pair('Rotate', 0.8, 8, 'Color', 0.4, 0),
  pair('Rotate', 0.4, 9, 'Equalize', 0.6, 2),
  pair('Equalize', 0, 7, 'Equalize', 0.8, 8),
  pair('Invert', 0.6, 4, 'Equalize', 1, 8),
  pair('Color', 0.6, 4, 'Contrast', 1, 8),
  pair('Rotate', 0.8, 8, 'Color', 1, 2),
  pair('Color', 0.8, 8, 'Solarize', 0.8, 7),
  pair('Sharpness', 0.4, 7, 'Invert', 0.6, 8),
  pair('ShearX', 0.6, 5, 'Equalize', 1, 9),
  pair('Color', 0.4, 0, 'Equalize', 0.6, 3),
  pair('Equalize', 0.4, 7, 'Solarize', 0.2, 4),
  pair('Solarize', 0.6, 5, 'AutoContrast', 0.6, 5),
  pair('Invert', 0.6, 4, 'Equalize', 1, 8),
  pair('Color', 0.6, 4, 'Contrast', 1, 8),
  pair('Equalize', 0.8, 8, 'Equalize', 0.6, 3),
];
const V0: readonly (readonly TimmChoice[])[] = [
  pair('Equalize', 0.8, 1, 'ShearY', 0.8, 4),
  pair('Color', 0.4, 9, 'Equalize', 0.6, 3),
  pair('Color', 0.4, 1, 'Rotate', 0.6, 8),
  pair('Solarize', 0.8, 3, 'Equalize', 0.4, 7),
  pair('Solarize', 0.4, 2, 'Solarize', 0.6, 2),
  pair('Color', 0.2, 0, 'Equalize', 0.8, 8),
  pair('Equalize', 0.4, 8, 'SolarizeAdd', 0.8, 3),
  pair('ShearX', 0.2, 9, 'Rotate', 0.6, 8),
  pair('Color', 0.6, 1, 'Equalize', 1, 2),
  pair('Invert', 0.4, 9, 'Rotate', 0.6, 0),
  pair('Equalize', 1, 9, 'ShearY', 0.6, 3),
  pair('Color', 0.4, 7, 'Equalize', 0.6, 0),
  pair('Posterize', 0.4, 6, 'AutoContrast', 0.4, 7),
  pair('Solarize', 0.6, 8, 'Color', 0.6, 9),
  pair('Solarize', 0.2, 4, 'Rotate', 0.8, 9),
  pair('Rotate', 1, 7, 'TranslateYRel', 0.8, 9),
  pair('ShearX', 0, 0, 'Solarize', 0.8, 4),
  pair('ShearY', 0.8, 0, 'Color', 0.6, 4),
  pair('Color', 1, 0, 'Rotate', 0.6, 2),
  pair('Equalize', 0.8, 4, 'Equalize', 0, 8),
  pair('Equalize', 1, 4, 'AutoContrast', 0.6, 2),
  pair('ShearY', 0.4, 7, 'SolarizeAdd', 0.6, 7),
  pair('Posterize', 0.8, 2, 'Solarize', 0.6, 10),
  pair('Solarize', 0.6, 8, 'Equalize', 0.6, 1),
  pair('Color', 0.8, 6, 'Rotate', 0.4, 5),
];
const THREE_A: readonly (readonly TimmChoice[])[] = [
  [['Solarize', 1, 5]],
  [['Desaturate', 1, 10]],
  [['GaussianBlurRand', 1, 10]],
];

/** The same lists with another operation that posterizes. */
function withPosterize(lists: readonly (readonly TimmChoice[])[]): readonly (readonly TimmChoice[])[] {
  return lists.map((list) =>
    list.map(([operation, probability, magnitude]) => [
      operation.startsWith('Posterize') ? 'PosterizeIncreasing' : operation,
      probability,
      magnitude,
    ]),
  );
}

export const TIMM_PAIRS: Readonly<Record<string, readonly (readonly TimmChoice[])[]>> = {
  original: ORIGINAL,
  originalr: withPosterize(ORIGINAL),
  v0: V0,
  v0r: withPosterize(V0),
  '3a': THREE_A,
};
