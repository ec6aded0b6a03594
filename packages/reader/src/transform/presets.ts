/** Transforms by name: those of published recipes, as their programs make them. */
import { readFileSync } from 'node:fs';
import { didYouMean, OptionError } from '@shardtool/base';
import type { StepInput } from './step-inputs.js';

export interface Preset {
  /** A sentence with its purpose and source. */
  readonly about: string;
  readonly steps: readonly StepInput[];
}

/** Floats from 0 to 1, normalized by the means and deviations of ImageNet. */
const IMAGENET: readonly StepInput[] = [
  { name: 'toDtype', dtype: 'float32', scale: true },
  { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
];
/** Like {@link IMAGENET}, with the means and deviations of CLIP. */
const CLIP: readonly StepInput[] = [
  { name: 'toDtype', dtype: 'float32', scale: true },
  {
    name: 'normalize',
    mean: [0.48145466, 0.4578275, 0.40821073],
    std: [0.26862954, 0.26130258, 0.27577711],
  },
];

/** Training of timm's ResNet-50 by the procedures A1 to A3 ("ResNet strikes back", 2021). */
function strikesBack(size: number, policy: string): readonly StepInput[] {
  return [
    { name: 'randomResizedCrop', size, interpolation: 'random' },
    { name: 'randomHorizontalFlip' },
    { name: 'timmAugment', config: policy },
    ...IMAGENET,
  ];
}

function evaluation(resized: number, interpolation: 'bilinear' | 'bicubic', values: readonly StepInput[]): StepInput[] {
  return [{ name: 'resize', size: resized, interpolation }, { name: 'centerCrop', size: 224 }, ...values];
}

const JITTER = { name: 'colorJitter', brightness: 0.8, contrast: 0.8, saturation: 0.8, hue: 0.2 } as const;

export const PRESETS = {
  train224: {
    about: 'A random crop and flip, uint8: the usual augmentation for ImageNet.',
    steps: [{ name: 'randomResizedCrop', size: 224 }, { name: 'randomHorizontalFlip' }],
  },
  eval224: {
    about: 'Resized to 256 and cropped to 224, uint8: the usual evaluation for ImageNet.',
    steps: [
      { name: 'resize', size: 256 },
      { name: 'centerCrop', size: 224 },
    ],
  },
  'timm/resnet50-a1': {
    about: "Training of timm's ResNet-50 A1. Mixup and cutmix are the loader's option mix.",
    steps: strikesBack(224, 'rand-m7-mstd0.5-inc1'),
  },
  'timm/resnet50-a2': {
    about: "Training of timm's ResNet-50 A2, with the same transform as A1.",
    steps: strikesBack(224, 'rand-m7-mstd0.5-inc1'),
  },
  'timm/resnet50-a3': {
    about: "Training of timm's ResNet-50 A3, at 160 pixels.",
    steps: strikesBack(160, 'rand-m6-mstd0.5-inc1'),
  },
  'timm/resnet50-eval': {
    about: "Evaluation of timm's ResNet-50 A1 to A3: 95 % of the shorter side, bicubic.",
    steps: evaluation(235, 'bicubic', IMAGENET),
  },
  'torchvision/resnet50-v2': {
    about: "Training of torchvision's ResNet-50 with the weights IMAGENET1K_V2, at 176 pixels.",
    steps: [
      { name: 'randomResizedCrop', size: 176 },
      { name: 'randomHorizontalFlip' },
      { name: 'trivialAugmentWide', interpolation: 'bilinear' },
      ...IMAGENET,
      { name: 'randomErasing', p: 0.1 },
    ],
  },
  'torchvision/resnet50-v2-eval': {
    about: "Evaluation of torchvision's ResNet-50 with the weights IMAGENET1K_V2.",
    steps: evaluation(232, 'bilinear', IMAGENET),
  },
  deit3: {
    about: 'Training of DeiT III on ImageNet-1k: ThreeAugment and color jitter.',
    steps: [
      { name: 'randomResizedCrop', size: 224, interpolation: 'bicubic' },
      { name: 'randomHorizontalFlip' },
      { name: 'threeAugment' },
      { name: 'colorJitter', brightness: 0.3, contrast: 0.3, saturation: 0.3 },
      ...IMAGENET,
    ],
  },
  'deit3/src': {
    about: 'Training of DeiT III with its simple random crop, as for ImageNet-21k.',
    steps: [
      { name: 'resize', size: 224, interpolation: 'bicubic' },
      { name: 'randomCrop', size: 224, padding: 4, paddingMode: 'reflect' },
      { name: 'randomHorizontalFlip' },
      { name: 'threeAugment' },
      { name: 'colorJitter', brightness: 0.3, contrast: 0.3, saturation: 0.3 },
      ...IMAGENET,
    ],
  },
  open_clip: {
    about: 'Training of open_clip: a random crop of at least 90 % of the area, bicubic.',
    steps: [{ name: 'randomResizedCrop', size: 224, scale: [0.9, 1], interpolation: 'bicubic' }, ...CLIP],
  },
  'open_clip-eval': {
    about: 'Evaluation of open_clip: the center of the image, bicubic.',
    steps: evaluation(224, 'bicubic', CLIP),
  },
  simclr: {
    about: 'One view of SimCLR at full strength of its color jitter.',
    steps: [
      { name: 'randomResizedCrop', size: 224, interpolation: 'bicubic' },
      { name: 'randomHorizontalFlip' },
      { name: 'randomApply', transforms: [JITTER], p: 0.8 },
      { name: 'randomGrayscale', p: 0.2 },
      { name: 'gaussianBlur', kernelSize: 23, sigma: [0.1, 2], p: 0.5 },
      { name: 'toDtype', dtype: 'float32', scale: true },
    ],
  },
  mae: {
    about:
      'Pre-training of masked autoencoders (MAE): a random crop of at least 20 % of the area, bicubic, and a flip.',
    steps: [
      { name: 'randomResizedCrop', size: 224, scale: [0.2, 1], interpolation: 'bicubic' },
      { name: 'randomHorizontalFlip' },
      ...IMAGENET,
    ],
  },
} as const satisfies Record<string, Preset>;

export type PresetName = keyof typeof PRESETS;

export const PRESET_NAMES = Object.keys(PRESETS) as readonly PresetName[];

/** A JSON file with a list of steps. */
export type TransformFile = `${string}.json`;

/**
 * The steps of a preset, or those of a JSON file if the name ends with `.json`. Throws {@link OptionError} if there is no such preset, or
 * the file cannot be read.
 */
export function namedSteps(name: string): readonly StepInput[] {
  if (Object.hasOwn(PRESETS, name)) return PRESETS[name as PresetName].steps;
  if (name.endsWith('.json')) return readSteps(name);
  const hint = didYouMean(name, PRESET_NAMES) || '.';
  throw new OptionError(
    {},
    `There is no transform "${name}"${hint} Pass a list of steps, a JSON file, or one of ${PRESET_NAMES.join(', ')}.`,
  );
}

function readSteps(file: string): readonly StepInput[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as readonly StepInput[];
  } catch (cause) {
    throw new OptionError(
      {},
      `The transform ${file} cannot be read as JSON (${(cause as Error).message}): it must be a file with a list of steps, ` +
        'such as "shardtool transforms NAME" prints.',
      { cause },
    );
  }
}
