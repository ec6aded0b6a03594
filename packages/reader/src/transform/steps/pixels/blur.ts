import { SampleDecodeError, sentence } from '@shardtool/base';
import { blurScratchBytes } from '../../../kernels/effects.js';
import type { EffectEntry } from '../../effects.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { ODD, SIGMA } from '../../parameters/kinds.js';
import { defaulted, needed } from '../../parameters/parameter.js';
import { uniform } from '../../random.js';
import { step } from '../step.js';

/** A Gaussian blur. `kernel` is the kernel size [x, y] in pixels, both odd. */
export interface BlurEffect {
  readonly kind: 'blur';
  readonly kernel: readonly [number, number];
  readonly sigma: number;
}

/** The blur of Pillow's ImageFilter.GaussianBlur, whose radius is `sigma`. */
export interface PillowBlurEffect {
  readonly kind: 'pillowBlur';
  readonly sigma: number;
}

/** Draws one random number: sigma (v2.GaussianBlur `make_params`). */
export const gaussianBlur = step(
  'gaussianBlur',
  {
    help: 'Blurs the image with a random sigma.',
    like: 'GaussianBlur',
    tolerance: 'within 1 level',
    parameters: {
      kernelSize: needed(ODD, 'Kernel size in pixels.'),
      sigma: defaulted(SIGMA, [0.1, 2], 'Standard deviation in pixels, or the range to draw it from.'),
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      if (!applies(step.p, random)) return;
      const image = canvas.size;
      const [x, y] = step.kernelSize;
      const sigma = uniform(step.sigma, random);
      if (x >> 1 < image.width && y >> 1 < image.height) {
        canvas.applyEffects([{ kind: 'blur', kernel: step.kernelSize, sigma }]);
        return;
      }
      throw new SampleDecodeError(
        {},
        sentence`it is ${image.width}x${image.height} pixels, too small for the gaussianBlur kernel of ${x}x${y}: resize it first, or choose a smaller kernelSize`,
      );
    },
  },
);

export const blur: EffectEntry<BlurEffect> = {
  makes: (picture) => picture,
  run: (from, to, { kernel, sigma }, { effects, scratch }) =>
    effects.blur(from, to, kernel, sigma, scratch.allocate(blurScratchBytes(from.width, kernel))),
};

export const pillowBlur: EffectEntry<PillowBlurEffect> = {
  change: (picture, { sigma }, { effects, scratch }) =>
    effects.boxBlur(picture, sigma, scratch.allocate(8 * Math.max(picture.width, picture.height))),
};
