import { expect, test } from 'vitest';
import { checkDamage, DamageBench } from '../crop-index-damage.js';
import { CropBench, checkPixels } from '../crop-index-workbench.js';
import { TIMES } from '../repetitions.js';

/** Ten seconds of one core. */
const IMAGES = 5000 * TIMES;
const TIMEOUT = 10 * 60_000 * TIMES;

test(
  'crops with an index have the same pixels as without, for eight crops of each image',
  async () => {
    expect(await checkPixels(await CropBench.open(), IMAGES, 300)).toBe(8 * IMAGES);
  },
  TIMEOUT,
);

test(
  'damaged indexes and files never cause a write outside the target',
  () => {
    const cases = 4000 * TIMES;
    expect(checkDamage(new DamageBench(), cases)).toBeGreaterThan(cases / 20);
  },
  TIMEOUT,
);
