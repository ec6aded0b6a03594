import type { Scratch } from '../codec/scratch.js';
import { blurScratchBytes, type EffectKernels, PICTURE_SLACK_BYTES, type Picture } from '../kernels/effects.js';
import type { Size } from './crops.js';
import type { Effect } from './effects.js';

/** What effects run on. */
export interface EffectTools {
  readonly effects: EffectKernels;
  readonly scratch: Scratch;
}

/** Room for a picture with the slack that kernels need. */
export function allocatePicture(scratch: Scratch, { width, height }: Size): Picture {
  return { address: scratch.allocate(width * height * 3 + PICTURE_SLACK_BYTES), width, height };
}

/** Bytes of scratch that effects on pictures of up to `pictureBytes` take at once. */
export function effectBytes(pictureBytes: number): number {
  // The picture before and the one after. A blur's rows of words, 255 at most, are less than that of a large picture.
  return 2 * (pictureBytes + PICTURE_SLACK_BYTES) + BLUR_ROWS_BYTES;
}

/** 259 rows of 4,096 pixels in words. */
const BLUR_ROWS_BYTES = 259 * 4096 * 6;

/** Applies effects one after the other. What comes back may lie elsewhere; the picture given is used up. */
export function runEffects(picture: Picture, effects: readonly Effect[], tools: EffectTools): Picture {
  let now = picture;
  // The picture before, whose place the one after next may take.
  let spare: Picture | null = null;
  for (const effect of effects) {
    if (effect.kind === 'rotate' || effect.kind === 'blur') {
      const next: Picture = targetOf(effect.kind === 'rotate' ? effect.size : now, spare, tools.scratch);
      if (effect.kind === 'rotate') tools.effects.rotate(now, next, effect.matrix, effect.interpolation, effect.fill);
      else blur(now, next, effect, tools);
      spare = now;
      now = next;
    } else changeInPlace(now, effect, tools);
  }
  return now;
}

function targetOf(size: Size, spare: Picture | null, scratch: Scratch): Picture {
  const fits = spare !== null && spare.width * spare.height >= size.width * size.height;
  return fits ? { ...size, address: spare.address } : allocatePicture(scratch, size);
}

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { readonly kind: Kind }>;

function blur(
  from: Picture,
  to: Picture,
  { kernel, sigma }: EffectOf<'blur'>,
  { effects, scratch }: EffectTools,
): void {
  effects.blur(from, to, kernel, sigma, scratch.allocate(blurScratchBytes(from.width, kernel)));
}

function changeInPlace(
  picture: Picture,
  effect: Exclude<Effect, EffectOf<'rotate' | 'blur'>>,
  tools: EffectTools,
): void {
  const { effects, scratch } = tools;
  switch (effect.kind) {
    case 'brightness':
      effects.brighten(picture, effect.factor);
      break;
    case 'contrast':
      effects.contrast(picture, effect.factor);
      break;
    case 'saturation':
      effects.saturate(picture, effect.factor);
      break;
    case 'hue':
      effects.turnHue(picture, effect.turn);
      break;
    case 'erase': {
      const { rect } = effect;
      const pitch = picture.width * 3;
      const pattern = scratch.allocate(64);
      effects.layPattern(Uint8Array.from(effect.value), pattern);
      effects.fillRows(picture.address + rect.y * pitch + rect.x * 3, pitch, rect.height, rect.width * 3, pattern);
    }
  }
}
