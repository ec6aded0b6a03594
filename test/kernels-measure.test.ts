import fc from 'fast-check';
import { expect, test } from 'vitest';
import { measure } from '#reader/inspect/measure';
import { noise } from './kernels-memory.js';
import { measureReference } from './measure-reference.js';

const SIDE = 256;

/** A picture of one colour, of noise, or of waves with noise, so that flat and detailed parts are next to each other. */
function picture(seed: number, low: number, high: number, wave: number): Uint8Array {
  const { pixels } = noise(SIDE, SIDE, seed);
  return pixels.map((byte, i) => {
    const [x, y] = [Math.floor(i / 3) % SIDE, Math.floor(i / 3 / SIDE)];
    const within = wave === 0 ? byte / 255 : (1 + Math.sin((x * wave) / 40 + y / (wave + 1))) / 2 + byte / 5000;
    return Math.min(255, Math.max(0, Math.round(low + within * (high - low))));
  });
}

test('the measures of an image equal those of plain loops, bit for bit', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 30), fc.nat(255), fc.nat(255), fc.nat(12), (seed, low, high, wave) => {
      const pixels = picture(seed, low, high, wave);
      expect(measure(pixels)).toStrictEqual(measureReference(pixels));
    }),
    { numRuns: 40 },
  );
});

test('black and white images, and the largest differences between neighbours, cause no overflow of a sum', () => {
  const board = noise(SIDE, SIDE, 1).pixels.map((_, i) =>
    (Math.floor(i / 3) + Math.floor(i / 3 / SIDE)) % 2 ? 255 : 0,
  );
  for (const pixels of [board, board.map(() => 0), board.map(() => 255), board.map((_, i) => [255, 0, 255][i % 3]!)])
    expect(measure(pixels)).toStrictEqual(measureReference(pixels));
});

test('the measures of an image do not depend on the image before', () => {
  const [first, second] = [picture(1, 0, 255, 0), picture(2, 40, 90, 3)];
  const alone = measure(second);
  measure(first);
  expect(measure(second)).toStrictEqual(alone);
});
