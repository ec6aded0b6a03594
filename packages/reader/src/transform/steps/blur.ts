import { SampleDecodeError } from '@shardtool/base';
import { blurScratchBytes } from '../../kernels/effects.js';
import type { EffectEntry } from '../effects.js';
import { uniform } from '../random.js';
import { ODD, SIGMA } from './kinds.js';
import { defaulted, needed, step } from './step.js';

/** `kernel` is [x, y] in pixels, odd. */
export interface BlurEffect {
  readonly kind: 'blur';
  readonly kernel: readonly [number, number];
  readonly sigma: number;
}

/** Draws one number: sigma (v2.GaussianBlur `make_params`). */
export const gaussianBlur = step(
  'gaussianBlur',
  {
    help: 'Blurs, with a random sigma.',
    like: 'GaussianBlur',
    tolerance: 'within 1 level',
    parameters: {
      kernelSize: needed(ODD, 'Pixels that count: a number, or [x, y].'),
      sigma: defaulted(SIGMA, [0.1, 2], 'Standard deviation in pixels: a number, or what it is drawn from.'),
    },
  },
  {
    isEffect: true,
    draw: (step, canvas, random) => {
      const image = canvas.size;
      const [x, y] = step.kernelSize;
      const sigma = uniform(step.sigma, random);
      if (x >> 1 < image.width && y >> 1 < image.height) {
        canvas.affect([{ kind: 'blur', kernel: step.kernelSize, sigma }]);
        return;
      }
      throw new SampleDecodeError(
        {},
        `it is ${image.width}x${image.height} pixels where gaussianBlur takes ${x}x${y} around each: resize before, or choose ` +
          'a smaller kernelSize',
      );
    },
  },
);

export const blur: EffectEntry<BlurEffect> = {
  makes: (picture) => picture,
  run: (from, to, { kernel, sigma }, { effects, scratch }) =>
    effects.blur(from, to, kernel, sigma, scratch.allocate(blurScratchBytes(from.width, kernel))),
};
