import type { Size } from '../codec/codec.js';
import type { Scratch } from '../codec/scratch.js';
import { PICTURE_SLACK_BYTES, type Picture } from '../kernels/effects.js';
import type { Effect, EffectEntry, EffectTools, RunEffects } from '../transform/effects.js';
import { EFFECTS } from '../transform/step-table.js';

/** Allocates a picture with the slack that kernels need after it. */
export function allocatePicture(scratch: Scratch, { width, height }: Size): Picture {
  return { address: scratch.allocate(width * height * 3 + PICTURE_SLACK_BYTES), width, height };
}

/** Scratch memory in bytes that effects on pictures of up to `pictureBytes` need. */
export function effectBytes(pictureBytes: number, extraPictures = 0): number {
  // The picture before and after an effect, and the rows of words of a blur.
  return (2 + extraPictures) * (pictureBytes + PICTURE_SLACK_BYTES) + BLUR_ROWS_BYTES;
}

/** Memory of a blur: at most 259 rows of 4,096 pixels, 3 words of 2 bytes per pixel. */
const BLUR_ROWS_BYTES = 259 * 4096 * 6;

/** Applies effects in order. The result may be at another address; `picture` is overwritten. */
export const runEffects: RunEffects = (picture, effects, given, firstSpare = null) => {
  const tools: EffectTools = { ...given, runEffects };
  let now = picture;
  // The previous picture. Its memory is reused for the result of the next effect.
  let spare: Picture | null = firstSpare;
  for (const effect of effects) {
    const entry = EFFECTS[effect.kind] as EffectEntry<Effect>;
    if ('change' in entry) entry.change(now, effect, tools);
    else {
      const next: Picture = targetOf(entry.makes(now, effect), spare, tools.scratch);
      entry.run(now, next, effect, tools);
      spare = now;
      now = next;
    }
  }
  return now;
};

function targetOf({ width, height }: Size, spare: Picture | null, scratch: Scratch): Picture {
  const fits = spare !== null && spare.width * spare.height >= width * height;
  return fits ? { width, height, address: spare.address } : allocatePicture(scratch, { width, height });
}
