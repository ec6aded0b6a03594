/**
 * The steps of a transform by name, with the names, parameters and defaults of torchvision v2. Everything about a step (checks,
 * errors, docs/transforms.md, hover texts, Python types) comes from its entry.
 */
import type { Effect, EffectEntry } from './effects.js';
import { randomApply, randomChoice, randomOrder } from './steps/containers/containers.js';
import { mixChains } from './steps/containers/mix-chains.js';
import { augMix, autoAugment, randAugment, threeAugment, trivialAugmentWide } from './steps/containers/policies.js';
import { timmAugment } from './steps/containers/timm-augment.js';
import { randomAffine, randomRotate90 } from './steps/geometry/affine.js';
import { randomIoUCrop, sanitizeBoundingBoxes } from './steps/geometry/boxes.js';
import { cover } from './steps/geometry/cover.js';
import { centerCrop, centerCropOrPad, cornerCrop, randomCrop, randomResizedCrop } from './steps/geometry/crops.js';
import { elastic, elasticTransform } from './steps/geometry/elastic.js';
import { randomHorizontalFlip, randomVerticalFlip } from './steps/geometry/flips.js';
import { pad, randomZoomOut } from './steps/geometry/padding.js';
import { perspective, randomPerspective } from './steps/geometry/perspective.js';
import { randomResize, randomShortestSize, resizeKeepRatio } from './steps/geometry/random-sizes.js';
import { letterbox, resize, scaleJitter } from './steps/geometry/resizes.js';
import { randomRotation, rotate } from './steps/geometry/rotation.js';
import { blur, gaussianBlur, pillowBlur } from './steps/pixels/blur.js';
import {
  brightness,
  colorJitter,
  contrast,
  grayscale,
  hue,
  randomGrayscale,
  saturation,
} from './steps/pixels/colours.js';
import {
  autocontrast,
  equalize,
  randomAdjustSharpness,
  randomAutocontrast,
  randomEqualize,
  sharpness,
} from './steps/pixels/contrast-steps.js';
import { erase, randomErasing } from './steps/pixels/erasing.js';
import { jpeg, jpegArtifacts } from './steps/pixels/jpeg.js';
import { gaussianNoise, hsv, hsvJitter, noise } from './steps/pixels/noise.js';
import { randomPhotometricDistort } from './steps/pixels/photometric.js';
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
} from './steps/pixels/point-operations.js';
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
  jpeg,
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
  jpeg: jpegArtifacts,
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
