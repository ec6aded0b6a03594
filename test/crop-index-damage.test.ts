import { beforeAll, expect, test } from 'vitest';
import { checkDamage, DamageBench } from './crop-index-damage.js';

let bench: DamageBench;
beforeAll(() => {
  bench = new DamageBench();
});

test('damaged indexes and files write nothing beside their target, and end in an error or a small JPEG', () => {
  expect(checkDamage(bench, 500)).toBeGreaterThan(50);
});
