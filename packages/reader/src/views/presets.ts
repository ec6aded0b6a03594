/** Views by name: those of published recipes, as their programs make them. */
import { readFileSync } from 'node:fs';
import { didYouMean, OptionError } from '@shardtool/base';
import { PRESET_NAMES } from '../transform/presets.js';
import type { StepInput } from '../transform/step-inputs.js';
import type { ViewsInput } from './options.js';

export interface ViewPreset {
  /** A sentence with its purpose and source. */
  readonly about: string;
  readonly views: ViewsInput;
}

/** The sizes of the crops of DINO, and whether they are flipped. */
interface Dino {
  readonly global: number;
  readonly local: number;
  readonly flips: boolean;
  /** Size of the crops of the Gram teacher: the global crops, before they are resized and changed. */
  readonly gram?: number;
}

const JITTER = { name: 'colorJitter', brightness: 0.4, contrast: 0.4, saturation: 0.2, hue: 0.1 } as const;
const IMAGENET: readonly StepInput[] = [
  { name: 'toDtype', dtype: 'float32', scale: true },
  { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
];

/**
 * DataAugmentationDINO of DINOv2 and DINOv3 (dinov2/data/augmentations.py, dinov3/data/augmentations.py). Its
 * GaussianBlur(p) passes 1 - p to RandomApply: GaussianBlur(p=1) of the first crop never blurs, and GaussianBlur(p=0.1)
 * of the second blurs with probability 0.9.
 */
function dino({ global, local, flips, gram }: Dino): ViewsInput {
  const crop = (size: number, scale: readonly [number, number]): StepInput[] => [
    { name: 'randomResizedCrop', size, scale, interpolation: 'bicubic' },
    ...(flips ? [{ name: 'randomHorizontalFlip' } as const] : []),
  ];
  const changed = (blurred: number, ...more: StepInput[]): StepInput[] => [
    { name: 'randomApply', transforms: [JITTER], p: 0.8 },
    { name: 'randomGrayscale', p: 0.2 },
    ...(blurred > 0 ? [{ name: 'gaussianBlur', kernelSize: 9, sigma: [0.1, 2], p: blurred } as const] : []),
    ...more,
    ...IMAGENET,
  ];
  const whole = crop(gram ?? global, [0.32, 1]);
  const wide: StepInput[] =
    gram === undefined ? whole : [...whole, { name: 'resize', size: [global, global], interpolation: 'bicubic' }];
  return {
    global: [
      { transform: [...wide, ...changed(0)] },
      { transform: [...wide, ...changed(0.9, { name: 'randomSolarize', threshold: 128, p: 0.2 })] },
    ],
    local: { count: 8, transform: [...crop(local, [0.05, 0.32]), ...changed(0.5)] },
    ...(gram !== undefined && { gram: { count: 2, follows: 'global', transform: [...whole, ...IMAGENET] } }),
  };
}

export const VIEW_PRESETS = {
  dinov2: {
    about: 'DINOv2: two crops of 224 pixels and eight of 96.',
    views: dino({ global: 224, local: 96, flips: true }),
  },
  'dinov2/vitl14': {
    about: "DINOv2's ViT-L/14: two crops of 224 pixels and eight of 98.",
    views: dino({ global: 224, local: 98, flips: true }),
  },
  dinov3: {
    about: "DINOv3's ViT-L/16 on ImageNet-1k: two crops of 224 pixels and eight of 96.",
    views: dino({ global: 224, local: 96, flips: true }),
  },
  'dinov3/vit7b16': {
    about: "DINOv3's ViT-7B/16, pre-training: two crops of 256 pixels and eight of 112, without flips.",
    views: dino({ global: 256, local: 112, flips: false }),
  },
  'dinov3/vit7b16-gram': {
    about:
      "DINOv3's ViT-7B/16, Gram anchoring: the crops of dinov3/vit7b16, and the global ones at 512 pixels for the Gram teacher.",
    views: dino({ global: 256, local: 112, flips: false, gram: 512 }),
  },
} as const satisfies Record<string, ViewPreset>;

/** A JSON file with groups of views. */
export type ViewsFile = `${string}.json`;

export type ViewPresetName = keyof typeof VIEW_PRESETS;

export const VIEW_PRESET_NAMES = Object.keys(VIEW_PRESETS) as readonly ViewPresetName[];

/**
 * The views of a preset, or those of a JSON file if the name ends with `.json`. Throws {@link OptionError} if there is no such preset,
 * or the file cannot be read.
 */
export function namedViews(name: ViewPresetName | ViewsFile | (string & {})): ViewsInput {
  if (Object.hasOwn(VIEW_PRESETS, name)) return VIEW_PRESETS[name as ViewPresetName].views;
  if (name.endsWith('.json')) return readViews(name);
  if (PRESET_NAMES.some((preset) => preset === name)) {
    throw new OptionError(
      {},
      `"${name}" is the name of one transform, not of views: for two views with it, set views to {"view": {"count": 2, "transform": "${name}"}}.`,
    );
  }
  const hint = didYouMean(name, VIEW_PRESET_NAMES) || '.';
  throw new OptionError(
    {},
    `There are no views "${name}"${hint} Pass groups of views, a JSON file of them, or one of ${VIEW_PRESET_NAMES.join(', ')}.`,
  );
}

function readViews(file: string): ViewsInput {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ViewsInput;
  } catch (cause) {
    throw new OptionError(
      {},
      `The views ${file} cannot be read as JSON (${(cause as Error).message}): it must be a file with groups of views, such as ` +
        '"shardtool transforms dinov2" prints.',
      { cause },
    );
  }
}
