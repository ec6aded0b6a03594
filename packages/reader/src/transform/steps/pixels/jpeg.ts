/** The step that compresses images as JPEG. */
import { JPEG_TABLE_BYTES, jpegScratchBytes } from '../../../kernels/effects.js';
import type { EffectEntry } from '../../effects.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { QUALITY } from '../../parameters/kinds.js';
import { needed } from '../../parameters/parameter.js';
import { integerBelow } from '../../random.js';
import { step } from '../step.js';

/** What JPEG compression of this quality, 1 to 100, changes. */
export interface JpegEffect {
  readonly kind: 'jpeg';
  readonly quality: number;
}

/** Draws one random number for p, then one for the quality (v2.JPEG `make_params`). */
export const jpeg = step(
  'jpeg',
  {
    help: 'Compresses the image as JPEG with 4:2:0 chroma, and decodes it.',
    like: 'JPEG',
    tolerance: 'equal to libjpeg-turbo, which torchvision and Pillow use',
    parameters: {
      quality: needed(QUALITY, 'Quality, or the range to draw it from, both ends included.'),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    extraPictures: 1,
    draw: ({ quality: [low, high], p }, canvas, random) => {
      if (!applies(p, random)) return;
      canvas.applyEffects([{ kind: 'jpeg', quality: low + integerBelow(high - low + 1, random) }]);
    },
  },
);

/** The tables of the JPEG standard (ITU-T T.81, K.1 and K.2), in rows: luma, then chroma. */
const STANDARD = [
  [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51,
    87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
  ],
  [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99,
  ],
] as const;

/** The tables of a quality, as libjpeg scales them (jcparam.c). */
function quantizersOf(quality: number): Uint16Array {
  const percent = quality < 50 ? Math.floor(5000 / quality) : 200 - quality * 2;
  const scaled = (value: number) => Math.max(1, Math.min(255, Math.floor((value * percent + 50) / 100)));
  return Uint16Array.from(STANDARD.flat(), scaled);
}

export const jpegArtifacts: EffectEntry<JpegEffect> = {
  change: (picture, { quality }, { effects, scratch }) => {
    const tables = scratch.allocate(JPEG_TABLE_BYTES);
    effects.compressJpeg(picture, quantizersOf(quality), tables, scratch.allocate(jpegScratchBytes(picture)));
  },
};
