import { beforeAll, expect, test } from 'vitest';
import { checkDamage, DamageBench } from './crop-index-damage.js';

let bench: DamageBench;
beforeAll(() => {
  bench = new DamageBench();
});

test('damaged indexes and files never cause a write outside the target, and give an error or a small JPEG', () => {
  expect(checkDamage(bench, 500)).toBeGreaterThan(50);
});
