/**
 * The steps of a transform by name, with the names, parameters and defaults of torchvision v2. Everything about a step (checks,
 * errors, docs/transforms.md, hover texts, Python types) comes from its entry.
 */
import type { Effect, EffectEntry } from './effects.js';
import { randomAffine, randomRotate90 } from './steps/affine.js';
import { blur, gaussianBlur, pillowBlur } from './steps/blur.js';
import { randomIoUCrop, sanitizeBoundingBoxes } from './steps/boxes.js';
import { brightness, colorJitter, contrast, grayscale, hue, randomGrayscale, saturation } from './steps/colours.js';
import { randomApply, randomChoice, randomOrder } from './steps/containers.js';
import {
  autocontrast,
  equalize,
  randomAdjustSharpness,
  randomAutocontrast,
  randomEqualize,
  sharpness,
} from './steps/contrast-steps.js';
import { cover } from './steps/cover.js';
import { centerCrop, centerCropOrPad, cornerCrop, randomCrop, randomResizedCrop } from './steps/crops.js';
import { elastic, elasticTransform } from './steps/elastic.js';
import { erase, randomErasing } from './steps/erasing.js';
import { randomHorizontalFlip, randomVerticalFlip } from './steps/flips.js';
import { mixChains } from './steps/mix-chains.js';
import { gaussianNoise, hsv, hsvJitter, noise } from './steps/noise.js';
import { pad, randomZoomOut } from './steps/padding.js';
import { perspective, randomPerspective } from './steps/perspective.js';
import { randomPhotometricDistort } from './steps/photometric.js';
import {
  invert,
  permuteChannels,
  posterize,
  randomChannelPermutation,
  randomInvert,
  randomPosterize,
  randomSolarize,
  solarize,
  solarizeAdd,
} from './steps/point-operations.js';
import { augMix, autoAugment, randAugment, threeAugment, trivialAugmentWide } from './steps/policies.js';
import { randomResize, randomShortestSize, resizeKeepRatio } from './steps/random-sizes.js';
import { letterbox, resize, scaleJitter } from './steps/resizes.js';
import { randomRotation, rotate } from './steps/rotation.js';
import { timmAugment } from './steps/timm-augment.js';
import { layout, normalize, toDtype } from './steps/values.js';

export const STEPS = {
  resize,
  randomResize,
  randomShortestSize,
  resizeKeepRatio,
  scaleJitter,
  letterbox,
  cover,
  pad,
  randomZoomOut,
  centerCrop,
  centerCropOrPad,
  cornerCrop,
  randomCrop,
  randomResizedCrop,
  randomIoUCrop,
  randomHorizontalFlip,
  randomVerticalFlip,
  randomRotation,
  randomRotate90,
  randomAffine,
  randomPerspective,
  elasticTransform,
  gaussianBlur,
  colorJitter,
  grayscale,
  randomGrayscale,
  randomPhotometricDistort,
  hsvJitter,
  gaussianNoise,
  randomInvert,
  randomPosterize,
  randomSolarize,
  randomAdjustSharpness,
  randomAutocontrast,
  randomEqualize,
  randomChannelPermutation,
  randAugment,
  trivialAugmentWide,
  autoAugment,
  augMix,
  threeAugment,
  timmAugment,
  randomApply,
  randomChoice,
  randomOrder,
  randomErasing,
  sanitizeBoundingBoxes,
  toDtype,
  normalize,
  layout,
} as const;

/** The implementations of effects, by kind. */
export const EFFECTS: { readonly [Kind in Effect['kind']]: EffectEntry<Extract<Effect, { readonly kind: Kind }>> } = {
  rotate,
  perspective,
  elastic,
  hsv,
  noise,
  blur,
  brightness,
  contrast,
  saturation,
  hue,
  erase,
  invert,
  posterize,
  solarize,
  solarizeAdd,
  permuteChannels,
  mixChains,
  autocontrast,
  equalize,
  sharpness,
  pillowBlur,
};
