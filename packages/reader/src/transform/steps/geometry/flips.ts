import { HALF_THE_TIME } from '../../parameters/chance.js';
import { step } from '../step.js';

const parameters = { p: HALF_THE_TIME };

export const randomHorizontalFlip = step(
  'randomHorizontalFlip',
  { help: 'Mirrors the image left to right.', like: 'RandomHorizontalFlip', tolerance: 'equal', parameters },
  {
    draw: ({ p }, canvas, random) => {
      if (random.next() < p) canvas.flip('x');
    },
  },
);

export const randomVerticalFlip = step(
  'randomVerticalFlip',
  { help: 'Mirrors the image top to bottom.', like: 'RandomVerticalFlip', tolerance: 'equal', parameters },
  {
    draw: ({ p }, canvas, random) => {
      if (random.next() < p) canvas.flip('y');
    },
  },
);
