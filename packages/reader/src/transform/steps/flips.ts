import { PROBABILITY } from './kinds.js';
import { defaulted, step } from './step.js';

const parameters = { p: defaulted(PROBABILITY, 0.5, 'How likely it is.') };

export const randomHorizontalFlip = step(
  'randomHorizontalFlip',
  { help: 'Mirrors left and right.', like: 'RandomHorizontalFlip', tolerance: 'equal', parameters },
  {
    draw: ({ p }, canvas, random) => {
      if (random.next() < p) canvas.flip('x');
    },
  },
);

export const randomVerticalFlip = step(
  'randomVerticalFlip',
  { help: 'Mirrors top and bottom.', like: 'RandomVerticalFlip', tolerance: 'equal', parameters },
  {
    draw: ({ p }, canvas, random) => {
      if (random.next() < p) canvas.flip('y');
    },
  },
);
