import { expect, test } from 'vitest';
import { transformMask } from '#reader/decode/transform-mask';
import { planSample } from '#reader/transform/plan';
import { compileTransform, type StepInput } from '#reader/transform/transform';
import type { Picture } from './kernels-memory.js';
import { TransformBench } from './transform-memory.js';

const bench = new TransformBench();
const picture: Picture = { width: 6, height: 4, pixels: Uint8Array.from({ length: 72 }, (_, i) => 100 + i) };
const random = { next: () => 0.5 };

/** The value at (x, y): red, green and blue. */
function pixel({ width, bytes }: { width: number; bytes: Uint8Array }, x: number, y: number): number[] {
  return [...bytes.subarray((y * width + x) * 3, (y * width + x) * 3 + 3)];
}

test.each<[readonly StepInput[], { x: number; y: number }]>([
  [[{ name: 'pad', padding: [1, 2, 3, 4], fill: [7, 8, 9], maskFill: 250 }], { x: 1, y: 2 }],
  [[{ name: 'randomZoomOut', p: 1, sideRange: [2, 2], fill: [7, 8, 9], maskFill: 250 }], { x: 3, y: 2 }],
  [[{ name: 'letterbox', size: 9, scaleUp: false, fill: [7, 8, 9], maskFill: 250 }], { x: 1, y: 2 }],
])('%j puts the image and its mask at the right position, and fills the border with the given values', (list, at) => {
  const result = bench.list(picture, list, random);
  const { width, height, passes } = planSample(compileTransform(list), 6, 4, random);
  const mask = { width: 6, height: 4, values: Uint8Array.from({ length: 24 }, (_, i) => i) };
  const { values } = transformMask(mask, passes);
  expect([result.width, result.height]).toEqual([width, height]);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [fromX, fromY] = [x - at.x, y - at.y];
      const isInside = fromX >= 0 && fromX < 6 && fromY >= 0 && fromY < 4;
      const first = 100 + (fromY * 6 + fromX) * 3;
      expect(pixel(result, x, y)).toEqual(isInside ? [first, first + 1, first + 2] : [7, 8, 9]);
      expect(values[y * width + x]).toBe(isInside ? fromY * 6 + fromX : 250);
    }
  }
});

test('letterbox resizes until the image fits', () => {
  const grey: Picture = { width: 40, height: 20, pixels: new Uint8Array(2400).fill(50) };
  const result = bench.list(grey, [{ name: 'letterbox', size: [30, 20] }], random);
  expect([result.width, result.height]).toEqual([20, 30]);
  expect([0, 9, 10, 19, 20, 29].map((y) => pixel(result, 10, y)[0])).toEqual([114, 114, 50, 50, 114, 114]);
});
