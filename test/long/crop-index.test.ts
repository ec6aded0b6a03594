import { expect, test } from 'vitest';
import { checkDamage, DamageBench } from '../crop-index-damage.js';
import { CropBench, checkPixels } from '../crop-index-workbench.js';
import { TIMES } from '../repetitions.js';

/** Ten seconds of one core. */
const IMAGES = 5000 * TIMES;
const TIMEOUT = 10 * 60_000 * TIMES;

test(
  'crops by an index have the pixels of today, eight of each image',
  async () => {
    expect(await checkPixels(await CropBench.open(), IMAGES, 300)).toBe(8 * IMAGES);
  },
  TIMEOUT,
);

test(
  'damaged indexes and files write nothing beside their target',
  () => {
    const cases = 4000 * TIMES;
    expect(checkDamage(new DamageBench(), cases)).toBeGreaterThan(cases / 20);
  },
  TIMEOUT,
);
