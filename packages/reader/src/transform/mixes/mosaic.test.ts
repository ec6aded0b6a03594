import { range } from '@shardtool/base';
import { expect, test } from 'vitest';
import { KeyedRandom } from '../random.js';
import { drawMix } from './mix.js';
import { checkMix } from './mix-option.js';
import { type DrawnMosaic, mosaicParts } from './mosaic.js';

const size = { width: 20, height: 12 };

function drawn(given: object, rows: number, seed: number, usable?: readonly number[]): DrawnMosaic {
  const mixes = checkMix({ name: 'mosaic', ...given });
  return drawMix(mixes, size, rows, new KeyedRandom(0.1, seed / 97), usable) as DrawnMosaic;
}

test('the four parts of a mosaic cover the picture once and meet at its center with the corners of their images', () => {
  for (const center of [
    { x: 7, y: 5 },
    { x: 0, y: 12 },
    { x: 20, y: 3 },
  ]) {
    const covered = new Uint8Array(size.width * size.height);
    for (const { from, to } of mosaicParts(size, center, [0, 1, 2, 3])) {
      for (let y = 0; y < to.height; y++) {
        for (let x = 0; x < to.width; x++) {
          expect(from.x + x).toBeLessThan(size.width);
          expect(from.y + y).toBeLessThan(size.height);
          covered[(to.y + y) * size.width + to.x + x]!++;
        }
      }
    }
    expect(new Set(covered)).toEqual(new Set([1]));
  }
  expect(mosaicParts(size, { x: 7, y: 5 }, [4, 5, 6, 7]).map(({ row, from }) => [row, from.x, from.y])).toEqual([
    [4, 13, 7],
    [5, 0, 7],
    [6, 13, 0],
    [7, 0, 0],
  ]);
});

test('each available image is used four times, and a mosaic has four different images', () => {
  const usable = [0, 1, 3, 4, 5, 7];
  for (const seed of range(20)) {
    const { rows } = drawn({ centerRange: [0.4, 0.6] }, 8, seed, usable);
    const sources = usable.map((row) => rows[row]!.parts.map((part) => part.row));
    usable.forEach((row, i) => {
      expect(sources[i]![0]).toBe(row);
      expect(new Set(sources[i]).size).toBe(4);
    });
    expect(sources.flat().sort()).toEqual(usable.flatMap((row) => [row, row, row, row]));
    expect(rows[2]!.parts).toEqual([]);
    expect(rows[6]!.parts).toEqual([]);
  }
});

test('a mosaic applies with its probability, and its center is uniform in its range', () => {
  const all = range(300).flatMap((seed) => drawn({ p: 0.7, centerRange: [0.25, 0.75] }, 8, seed).rows);
  const mosaics = all.filter(({ parts }) => parts.length > 0);
  expect(mosaics.length / all.length).toBeCloseTo(0.7, 1);
  const counts = new Map<number, number>();
  for (const { parts } of mosaics) counts.set(parts[3]!.to.x, (counts.get(parts[3]!.to.x) ?? 0) + 1);
  expect([...counts.keys()].sort((a, b) => a - b)).toEqual(range(10).map((x) => x + 5));
  const expected = mosaics.length / 10;
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  // 9 degrees of freedom: 27.9 has the probability 0.001.
  expect(chiSquare).toBeLessThan(27.9);
});

test('the error for an invalid parameter of a mosaic names it', () => {
  expect(() => checkMix({ name: 'mosaic', centerRange: [0.7, 0.3] })).toThrow(
    /centerRange must have the smaller value/,
  );
  expect(() => checkMix({ name: 'mosaic', p: 2 })).toThrow(/\(p /);
});
