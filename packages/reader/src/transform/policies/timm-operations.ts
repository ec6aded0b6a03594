import type { Size } from '../../codec/codec.js';
/** The operations of timm's policies (timm 1.0, data/auto_augment.py), with the arithmetic of Pillow. */
import type { Canvas } from '../canvas.js';
import { normal } from '../distributions.js';
import type { Effect, Rgb } from '../effects.js';
import { drawOne, type Random, uniform } from '../random.js';
import { type Affine, rotationOf } from '../rotation.js';
import type { MagnitudeNoise } from './timm-config.js';
import type { TimmOperation } from './timm-policies.js';

/** How geometric operations interpolate and fill. */
export interface TimmLook {
  /** The interpolations to draw from. */
  readonly interpolation: readonly ('bilinear' | 'bicubic')[];
  /** Value of the pixels outside the image. */
  readonly fill: Rgb;
  /** The largest translation, as a part of the side of the image, at magnitude 10. */
  readonly translatePct: number;
}

/** Probability and magnitude of an operation. */
export interface TimmStrength {
  readonly probability: number;
  readonly magnitude: number;
  readonly noise: MagnitudeNoise;
  /** The largest magnitude after the noise. */
  readonly limit: number;
}

/** The magnitude at which an operation has its usual largest effect. */
const FULL = 10;

/**
 * Draws what an operation does to an image of size `image`; null if it does not apply. Order of random numbers: one for the probability,
 * unless it is 1; for the magnitude none, one (uniform) or two (normal); one for the sign, if there is one; one for the interpolation, if
 * there are several and the operation moves pixels; one for the radius of GaussianBlurRand.
 */
export function drawTimmOperation(
  operation: TimmOperation,
  strength: TimmStrength,
  look: TimmLook,
  image: Size,
  random: Random,
): Effect | null {
  if (strength.probability < 1 && random.next() > strength.probability) return null;
  const level = Math.max(0, Math.min(drawMagnitude(strength, random), strength.limit)) / FULL;
  const signed = (value: number) => (random.next() > 0.5 ? -value : value);
  const factor = 0.1 + 1.8 * level;
  const increasing = () => Math.max(0.1, 1 + signed(0.9 * level));
  const moved = (matrix: Affine): Effect => {
    const { interpolation, fill } = look;
    const chosen = interpolation.length === 1 ? interpolation[0]! : drawOne(interpolation, random);
    const filter = chosen === 'bilinear' ? 'pillow-bilinear' : 'bicubic';
    const { width, height } = image;
    return { kind: 'rotate', matrix, size: { width, height }, interpolation: filter, fill, maskFill: 0 };
  };
  switch (operation) {
    case 'AutoContrast':
      return { kind: 'autocontrast' };
    case 'Equalize':
      return { kind: 'equalize' };
    case 'Invert':
      return { kind: 'invert' };
    case 'Rotate':
      return moved(rotationOf(signed(30 * level), [0, 0]));
    case 'Posterize':
      return posterize(Math.trunc(4 * level));
    case 'PosterizeIncreasing':
      return posterize(4 - Math.trunc(4 * level));
    case 'PosterizeOriginal':
      return posterize(4 + Math.trunc(4 * level));
    case 'Solarize':
      return solarize(Math.min(256, Math.trunc(256 * level)));
    case 'SolarizeIncreasing':
      return solarize(256 - Math.min(256, Math.trunc(256 * level)));
    case 'SolarizeAdd':
      return { kind: 'solarizeAdd', add: Math.min(128, Math.trunc(110 * level)), threshold: 128 };
    case 'Color':
      return { kind: 'saturation', factor, isPillow: true };
    case 'ColorIncreasing':
      return { kind: 'saturation', factor: increasing(), isPillow: true };
    case 'Contrast':
      return { kind: 'contrast', factor, isPillow: true };
    case 'ContrastIncreasing':
      return { kind: 'contrast', factor: increasing(), isPillow: true };
    case 'Brightness':
      return { kind: 'brightness', factor };
    case 'BrightnessIncreasing':
      return { kind: 'brightness', factor: increasing() };
    case 'Sharpness':
      return { kind: 'sharpness', factor };
    case 'SharpnessIncreasing':
      return { kind: 'sharpness', factor: increasing() };
    case 'ShearX': {
      const shear = signed(0.3 * level);
      return moved([1, shear, (shear * image.height) / 2, 0, 1, 0]);
    }
    case 'ShearY': {
      const shear = signed(0.3 * level);
      return moved([1, 0, 0, shear, 1, (shear * image.width) / 2]);
    }
    case 'TranslateXRel':
      return moved([1, 0, signed(look.translatePct * level) * image.width, 0, 1, 0]);
    case 'TranslateYRel':
      return moved([1, 0, 0, 0, 1, signed(look.translatePct * level) * image.height]);
    case 'Desaturate':
      return { kind: 'saturation', factor: clamped(1 - clamped(0.5 + 0.5 * level)), isPillow: true };
    case 'GaussianBlur':
      return { kind: 'pillowBlur', sigma: Math.max(0.1, Math.min(2, 0.1 + 1.9 * level)) };
    case 'GaussianBlurRand':
      return { kind: 'pillowBlur', sigma: uniform([0.1, 2 * clamped(level)], random) };
  }
}

/** Applies an effect to the image, with its masks and boxes. */
export function applyTimmEffect(effect: Effect | null, canvas: Canvas): void {
  if (effect?.kind === 'rotate') canvas.rotate(effect, false);
  else if (effect !== null) canvas.applyEffects([effect]);
}

function drawMagnitude({ magnitude, noise }: TimmStrength, random: Random): number {
  if (noise === 'uniform') return uniform([0, magnitude], random);
  return noise > 0 ? normal(magnitude, noise, random) : magnitude;
}

/** Pillow 13 rejects 0 bits; older versions make the image black. */
function posterize(bits: number): Effect {
  return { kind: 'posterize', bits: Math.max(0, Math.min(8, bits)) };
}

/** A threshold of 256 inverts nothing. */
function solarize(threshold: number): Effect | null {
  return threshold > 255 ? null : { kind: 'solarize', threshold };
}

function clamped(value: number): number {
  return Math.max(0, Math.min(1, value));
}
