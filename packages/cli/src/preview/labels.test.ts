import { expect, test } from 'vitest';
import { LABEL_HEIGHT, Labels } from './labels.js';
import { maskTile } from './tiles.js';

const labels = new Labels();
const hasFonts = await labels.hasFonts();

test.skipIf(!hasFonts)('characters without a font, and control characters, are drawn as their escapes', async () => {
  expect(await labels.draw('a\u{f8fe}b', 200)).toEqual(await labels.draw('a\\u{f8fe}b', 200));
  expect(await labels.draw('a\u001b[31m', 200)).toEqual(await labels.draw('a\\u001b[31m', 200));
});

test('markup is drawn as plain text', async () => {
  const { width, ink } = await labels.draw('<span size="90000">a</span> & <b>', 500);
  expect(width).toBeGreaterThan((await labels.draw('a', 500)).width * 5);
  expect(Math.max(...ink)).toBeGreaterThan(100);
});

test('a long label is cut at the width of its image, and a blank label is empty', async () => {
  const { width, height, ink } = await labels.draw('a long name of a class, '.repeat(40), 64);
  expect([width, ink.length]).toEqual([64, 64 * height]);
  expect(height).toBeLessThanOrEqual(LABEL_HEIGHT);
  expect(await labels.draw('  ', 64)).toMatchObject({ width: 0, height: 0 });
});

test('each value of a mask has a colour, and 0 is black', () => {
  const values = Uint8Array.from({ length: 32 }, (_, value) => value);
  const tile = maskTile(values);
  const colours = Array.from(values, (value) => String(tile.subarray(value * 3, value * 3 + 3)));
  expect(colours[0]).toBe('0,0,0');
  expect(new Set(colours).size).toBe(32);
});
