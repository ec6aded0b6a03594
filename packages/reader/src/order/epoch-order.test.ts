import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { epochOrder, type OrderOptions, positionOf, sampleAt } from './epoch-order.js';
import { word } from './words.js';

/** The whole order, position by position. */
function numbers(options: OrderOptions): number[] {
  const order = epochOrder(options);
  return Array.from({ length: order.samples }, (_, position) => sampleAt(order, position));
}

const list = (text: string) => text.split(' ').map(Number);

test('the words of the zero counter and key equal those of Philox4x32-10', () => {
  const words = [0, 1, 2, 3].map((i) => word({ seed: 0, epoch: 0 }, 0, 0, i));
  expect(words).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
});

test('the order with whole shards as units equals that of version 1', () => {
  const order = numbers({ counts: [5, 0, 3, 7, 1], seed: 1, epoch: 0, streams: 2, blockSamples: 4, unit: 'shard' });
  expect(order).toEqual(list('0 11 2 10 3 5 1 13 9 12 4 14 15 6 8 7'));
  expect(epochOrder({ counts: [5, 0, 3, 7, 1], seed: 1, epoch: 0, streams: 2, blockSamples: 4 }).line.unit).toBe(
    'shard',
  );
});

test('the order of seed 42, epochs 0 and 1, with chunks as units equals that of version 1', () => {
  const chunks = { counts: [30], seed: 42, streams: 2, blockSamples: 4 };
  expect(epochOrder({ ...chunks, epoch: 0 }).line.unit).toBe('chunk');
  expect(numbers({ ...chunks, epoch: 0 })).toEqual(
    list('18 10 19 9 17 11 16 25 0 26 1 24 29 4 28 6 2 27 20 5 21 7 3 13 22 12 8 14 23 15'),
  );
  expect(numbers({ ...chunks, epoch: 1 })).toEqual(
    list('10 1 9 2 8 24 11 25 5 3 6 26 4 27 7 20 12 21 14 22 15 17 13 16 29 23 0 18 28 19'),
  );
});

test('the order of seed 42, epochs 0 and 1, with samples as units equals that of version 1', () => {
  const samples = { counts: [3, 4], seed: 42, streams: 4, blockSamples: 2 };
  expect(epochOrder({ ...samples, epoch: 0 }).line.unit).toBe('sample');
  expect(numbers({ ...samples, epoch: 0 })).toEqual(list('3 5 2 1 4 0 6'));
  expect(numbers({ ...samples, epoch: 1 })).toEqual(list('2 3 0 5 1 4 6'));
});

test('the order of 10,009 samples with a seed above 2^32 equals that of version 1', () => {
  const counts = Array.from({ length: 200 }, (_, k) => (37 * k) % 101);
  const order = numbers({ counts, seed: 2 ** 40 + 7, epoch: 3, streams: 48, blockSamples: 64 });
  expect(order.slice(0, 4)).toEqual([3754, 1985, 6125, 5858]);
  expect(order).toHaveLength(10_009);
  expect(createHash('sha256').update(order.join(',')).digest('hex')).toBe(
    '0ce8375f625c2b5db826e36dfdf45be3a6587ff6891cc7e2a57fb8acc42871d3',
  );
});

test('without shuffling, one stream gives the order on disk, and several streams alternate', () => {
  const order = (streams: number) =>
    numbers({ counts: [3, 0, 4], seed: 9, epoch: 5, streams, blockSamples: 2, shuffle: false });
  expect(order(1)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(order(2)).toEqual([0, 4, 1, 5, 2, 6, 3]);
});

test('the option unit is used for any sizes', () => {
  for (const unit of ['sample', 'shard', 'chunk'] as const) {
    const options = { counts: [40, 1, 0, 22], seed: 5, epoch: 0, streams: 3, blockSamples: 4, unit };
    expect(epochOrder(options).line.unit).toBe(unit);
    expect(numbers(options).sort((a, b) => a - b)).toEqual(Array.from({ length: 63 }, (_, i) => i));
  }
});

test('the position of a sample is found without a search, for every kind of unit', () => {
  for (const unit of ['sample', 'shard', 'chunk'] as const) {
    const order = epochOrder({ counts: [40, 1, 0, 22], seed: 5, epoch: 0, streams: 7, blockSamples: 4, unit });
    for (let position = 0; position < order.samples; position++) {
      expect(positionOf(order, sampleAt(order, position))).toBe(position);
    }
  }
});

test('sample indices above 2^32 stay exact', () => {
  const counts = Array.from({ length: 600 }, () => 10_000_019);
  const order = epochOrder({ counts, seed: 3, epoch: 0, streams: 192, blockSamples: 32 });
  const { samples, pieces } = order.block(191, 5);
  expect(order.samples).toBe(6_000_011_400);
  expect(samples).toBeInstanceOf(Float64Array);
  expect(pieces[0]!.number).toBe(pieces[0]!.shard * 10_000_019 + pieces[0]!.first);
  expect(Math.min(...samples)).toBe(pieces[0]!.number);
  expect(sampleAt(order, positionOf(order, 5_999_999_999))).toBe(5_999_999_999);
});

test('the error for a value that is out of range names it', () => {
  const good = { counts: [5], seed: 1, epoch: 0, streams: 2, blockSamples: 4 };
  expect(() => epochOrder({ ...good, seed: -1 })).toThrow('seed is -1');
  expect(() => epochOrder({ ...good, epoch: 2 ** 32 })).toThrow('epoch is 4294967296');
  expect(() => epochOrder({ ...good, streams: 65_537 })).toThrow('streams is 65537');
  expect(() => epochOrder({ ...good, blockSamples: 0 })).toThrow('blockSamples is 0');
  expect(() => epochOrder({ ...good, counts: [1, 0.5] })).toThrow('counts[1] is 0.5');
});
