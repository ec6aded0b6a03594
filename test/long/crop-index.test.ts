import { expect, test } from 'vitest';
import { checkDamage, DamageBench } from '../crop-index-damage.js';
import { CropBench, checkPixels } from '../crop-index-workbench.js';

const HALF_AN_HOUR_MS = 30 * 60_000;

test(
  'a million crops by an index have the pixels of today',
  async () => {
    expect(await checkPixels(await CropBench.open(), 125_000, 300)).toBe(1_000_000);
  },
  HALF_AN_HOUR_MS,
);

test(
  'a hundred thousand damaged indexes and files write nothing beside their target',
  () => {
    expect(checkDamage(new DamageBench(), 100_000)).toBeGreaterThan(5000);
  },
  HALF_AN_HOUR_MS,
);
