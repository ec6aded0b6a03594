import type { Scratch } from '../codec/scratch.js';
import { PICTURE_SLACK_BYTES, type Picture } from '../kernels/effects.js';
import type { Size } from '../transform/crops.js';
import type { Effect, EffectEntry, EffectTools } from '../transform/effects.js';
import { EFFECTS } from '../transform/step-table.js';

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
}

function targetOf({ width, height }: Size, spare: Picture | null, scratch: Scratch): Picture {
  const fits = spare !== null && spare.width * spare.height >= width * height;
  return fits ? { width, height, address: spare.address } : allocatePicture(scratch, { width, height });
}
