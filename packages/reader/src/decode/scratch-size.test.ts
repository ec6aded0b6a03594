import { expect, test } from 'vitest';
import { compileTransform, type StepInput } from '../transform/transform.js';
import { scratchBytesFor } from './scratch-size.js';

const sharpen = { name: 'randomAdjustSharpness', sharpnessFactor: 2 } as const;
const bytes = (...list: StepInput[]) => scratchBytesFor({ transform: compileTransform(list) }, 24_000_000);

test('a crop that may not apply leaves room for the effects on the whole image', () => {
  const crop = { name: 'randomResizedCrop', size: 32 } as const;
  expect(bytes({ ...crop, p: 0.5 }, sharpen)).toBeGreaterThanOrEqual(bytes(sharpen));
  expect(bytes(crop, sharpen)).toBeLessThan(bytes(sharpen));
});

test('a random crop with reflected pixels leaves room for the whole image with its border', () => {
  const crop = { name: 'randomCrop', size: 32, padding: 4 } as const;
  const added = bytes({ ...crop, paddingMode: 'reflect' }) - bytes(crop);
  expect(added).toBeGreaterThanOrEqual(2 * 3 * 24_000_000);
  expect(added).toBeLessThan(3 * 3 * 24_000_000);
});

test('effects that a random order may apply to an enlarged image have room for it', () => {
  const enlarge = { name: 'resize', size: [4096, 4096] } as const;
  const order = (...transforms: StepInput[]) =>
    scratchBytesFor({ transform: compileTransform([{ name: 'randomOrder', transforms }]) }, 10_000);
  expect(order(sharpen, enlarge)).toBe(order(enlarge, sharpen));
});
