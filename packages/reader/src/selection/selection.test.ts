import type { ShardIndex } from '@shardtool/format';
import { expect, test } from 'vitest';
import { WEIGHTS_STREAM, word } from '../order/words.js';
import { type SelectedRun, type SelectionRequest, selectSamples } from './selection.js';

/** Shards of 4, 0 and 3 samples; keys are s0, s1, ...; classes alternate. */
const COUNTS = [4, 0, 3];
const CLASSES = ['ant', 'bee', 'cow'];

function indexOf(first: number, samples: number): ShardIndex {
  const numbers = Array.from({ length: samples }, (_, i) => first + i);
  return {
    samples,
    key: numbers.map((n) => `s${n}`),
    source: numbers.map(() => ''),
    offset: new Float64Array(samples),
    bytes: new Float64Array(samples),
    fields: new Map(),
    width: Int32Array.from(numbers, (n) => n * 100),
    height: new Int32Array(samples),
    orientation: new Uint8Array(samples),
    cls: Int32Array.from(numbers, (n) => n % 3),
    columns: new Map(),
  };
}

const dataset = {
  counts: COUNTS,
  classNames: CLASSES,
  indexOf: async (shard: number) => {
    expect(COUNTS[shard], 'the index of a shard without samples is not read').toBeGreaterThan(0);
    return indexOf(shard === 0 ? 0 : 4, COUNTS[shard]!);
  },
};

async function rowsOf(request: SelectionRequest, run: SelectedRun = {}) {
  const selection = (await selectSamples(request, dataset, run)).draw({ seed: 1, epoch: 0 });
  const rows = COUNTS.map((_, shard) => selection.rows(shard));
  rows.forEach((row, shard) => {
    if (row !== null) expect(selection.counts[shard]).toBe(row.length);
  });
  return rows.map((row) => row && [...row]);
}

test('without a request everything is selected, and no index is read', async () => {
  const subset = await selectSamples({}, { ...dataset, indexOf: () => Promise.reject(new Error('an index was read')) });
  const selection = subset.draw({ seed: 0, epoch: 0 });
  expect([subset.identity, selection.counts, selection.rows(0)]).toEqual(['', COUNTS, null]);
});

test('a string is the name of a class and a number its number, in classes and in weights', async () => {
  expect(await rowsOf({ classes: ['bee', 2] })).toEqual([[1, 2], null, [0, 1]]);
});

test('text is the name of a class and a number its number, in classes and in weights', async () => {
  const numbered = { ...dataset, classNames: ['10', '2', '0'] };
  const rowsWith = async (request: SelectionRequest) => {
    const { draw } = await selectSamples(request, numbered);
    const { rows } = draw({ seed: 1, epoch: 0 });
    return [0, 1, 2].map((shard) => rows(shard) && [...rows(shard)!]);
  };
  expect(await rowsWith({ classes: ['2'] })).toEqual([[1], null, [0]]);
  expect(await rowsWith({ classes: [2] })).toEqual([[2], null, [1]]);
  expect(await rowsWith({ weights: [['2', 0]] })).toEqual(await rowsWith({ classes: ['10', '0'] }));
  expect(await rowsWith({ weights: new Map<string | number, number>([[2, 0]]) })).toEqual(
    await rowsWith({ classes: ['10', '2'] }),
  );
  expect(await rowsWith({ weights: { '10': 0 } })).toEqual(await rowsWith({ weights: [[0, 0]] }));
});

test('an ambiguous name or number is rejected, and so is a repeated weight', async () => {
  const numbered = { ...dataset, classNames: ['10', '2', '0'] };
  await expect(selectSamples({ weights: { 2: 5 } }, numbered)).rejects.toThrow(
    'The weight of "2" is ambiguous: it could mean the class of this name (number 1) or class number 2 ("0"): give pairs',
  );
  await expect(selectSamples({ weights: { 1: 5 } }, dataset)).rejects.toThrow(
    'There is no class "1" (text is a name; for the class number, write the number 1, and for its weight use a Map',
  );
  await expect(selectSamples({ classes: ['1'] }, dataset)).rejects.toThrow('no class "1" (text is a name');
  const twice = [['bee', 2] as const, [1, 3] as const];
  await expect(selectSamples({ weights: twice }, dataset)).rejects.toThrow('weight of class 1 is given twice');
});

test('the error for an unknown class lists the existing classes', async () => {
  await expect(selectSamples({ classes: ['bea'] }, dataset)).rejects.toThrow(
    'no class "bea": the classes are ant, bee, cow',
  );
  await expect(selectSamples({ classes: [3] }, dataset)).rejects.toThrow('no class 3');
  await expect(selectSamples({ weights: { bea: 2 } }, dataset)).rejects.toThrow('no class "bea"');
});

test('keys are selected in the order on disk, whatever the order of the list', async () => {
  expect(await rowsOf({ keys: ['s6', 's0', 's3', 's0'] })).toEqual([[0, 3], null, [2]]);
});

test('the error for a key that is not in the dataset names it', async () => {
  await expect(selectSamples({ keys: ['s1', 's7', 's9'] }, dataset)).rejects.toThrow(
    'keys: the dataset has no samples with 2 of the keys, such as "s7": correct them, or remove them from the list.',
  );
});

test('an expression selects by the columns of the index, in combination with the other options', async () => {
  expect(await rowsOf({ where: 'width >= 200' })).toEqual([[2, 3], null, null]);
  expect(await rowsOf({ where: 'width >= 200', classes: ['ant'] })).toEqual([[3], null, [2]]);
});

test('a selection without samples is rejected', async () => {
  await expect(selectSamples({ where: 'width > 10000' }, dataset)).rejects.toThrow('No sample is selected');
  await expect(selectSamples({ weights: { ant: 0, bee: 0, cow: 0 } }, dataset)).rejects.toThrow(
    'No sample is selected',
  );
});

test('weights distribute an epoch with as many samples as have a weight', async () => {
  for (const scale of [1, 1e-3, 1 / 7, 1000]) {
    const counts = [3, 2, 2];
    const selection = (await selectSamples({ weights: ({ cls }) => scale / counts[cls]! }, dataset)).draw({
      seed: 3,
      epoch: 1,
    });
    expect(Array.from(selection.counts).reduce((a, b) => a + b)).toBe(7);
  }
  // Without the two cows there are five left, each used once.
  expect(await rowsOf({ weights: { ant: 0.2, bee: 0.2, cow: 0 } })).toEqual([[0, 1, 3], null, [0, 2]]);
});

test('any weights can distribute an epoch of any number of samples', async () => {
  const times = async (weights: number[], epochSamples: number, epoch = 0) => {
    const { rows } = (await selectSamples({ weights }, dataset, { epochSamples })).draw({ seed: 4, epoch });
    const found = new Array<number>(7).fill(0);
    for (const row of rows(0)!) found[row]!++;
    for (const row of rows(2)!) found[4 + row]!++;
    return found;
  };
  // If the epoch has the sum of integer weights, each sample is used as often as its weight says.
  expect(await times([3, 1, 0, 3, 1, 0, 3], 11)).toEqual([3, 1, 0, 3, 1, 0, 3]);
  expect(await times([0.75, 0.25, 0, 0.75, 0.25, 0, 0.75], 11)).toEqual([3, 1, 0, 3, 1, 0, 3]);
  const weights = [0.1, 1e6, 7, 0, 1e-9, 3, 2e5];
  const sum = weights.reduce((a, b) => a + b);
  for (const epochSamples of [1, 5, 7, 1000]) {
    for (let epoch = 0; epoch < 5; epoch++) {
      const found = await times(weights, epochSamples, epoch);
      expect(found.reduce((a, b) => a + b)).toBe(epochSamples);
      found.forEach((count, i) => {
        expect(Math.abs(count - (weights[i]! / sum) * epochSamples)).toBeLessThan(1);
      });
    }
  }
});

test('the weight of a sample may be any function of its key and class', async () => {
  const weights = ({ key, cls }: { key: string; cls: number }) => (key === 's0' ? 2 : cls === 1 ? 1 : 0);
  expect(await rowsOf({ weights }, { epochSamples: 4 })).toEqual([[0, 0, 1], null, [0]]);
  const wrong = () => Number.NaN;
  await expect(selectSamples({ weights: wrong }, dataset)).rejects.toThrow('The weight of sample "s0" is NaN');
});

test('an array has the weight of each sample by its index, and must have exactly one per sample', async () => {
  const each = [0, 1, 2, 0, 0, 3, 0];
  expect(await rowsOf({ weights: each }, { epochSamples: 6 })).toEqual([[1, 2, 2], null, [1, 1, 1]]);
  expect(await rowsOf({ weights: Float32Array.from(each), classes: ['cow'] }, { epochSamples: 5 })).toEqual([
    [2, 2],
    null,
    [1, 1, 1],
  ]);
  await expect(selectSamples({ weights: [1, 2] }, dataset)).rejects.toThrow(
    'weights has 2 numbers, but the dataset has 7 samples: give one number per sample, in the order on disk.',
  );
  await expect(selectSamples({ weights: [1, 1, 1, 1, 1, -1, 1] }, dataset)).rejects.toThrow(
    'The weight of sample number 5 is -1',
  );
});

test('over many epochs a sample is used as often as its weight says, independently of other samples', async () => {
  const subset = await selectSamples({ weights: { ant: 0.3, bee: 1, cow: 1.7 } }, dataset);
  const times = new Float64Array(7);
  const pairs = new Set<string>();
  for (let epoch = 0; epoch < 3000; epoch++) {
    const { rows } = subset.draw({ seed: 11, epoch });
    const ants = [...rows(0)!]
      .filter((row) => row % 3 === 0)
      .concat([...rows(2)!].filter((row) => row === 2).map(() => 6));
    pairs.add(ants.join());
    for (const row of rows(0)!) times[row]!++;
    for (const row of rows(2)!) times[4 + row]!++;
  }
  const sum = 3 * 0.3 + 2 * 1 + 2 * 1.7;
  for (const [n, count] of times.entries()) {
    expect(Math.abs(count / 3000 - ([0.3, 1, 1.7][n % 3]! / sum) * 7)).toBeLessThan(0.03);
  }
  expect(pairs).toEqual(new Set(['', '0', '3', '6', '0,3', '0,6', '3,6', '0,3,6'].filter((pair) => pairs.has(pair))));
  expect(pairs.size).toBeGreaterThan(6);
});

test('a run of an earlier version draws as it did then: a weight is a number of times, independent of other weights', async () => {
  const weights = { ant: 1.5, bee: 0.25, cow: 2.75 };
  for (const randomness of [
    { seed: 2 ** 52 + 3, epoch: 0 },
    { seed: 5, epoch: 2 ** 32 - 1 },
  ]) {
    const times = (number: number, weight: number) =>
      Math.floor(weight) + (word(randomness, WEIGHTS_STREAM, 0, number) * 2 ** -32 < weight % 1 ? 1 : 0);
    const subset = await selectSamples({ weights }, dataset, { identity: '52993df9f9d0dcd1' });
    const { rows } = subset.draw(randomness);
    const expected = (first: number, count: number) =>
      Array.from({ length: count }, (_, i) =>
        Array(times(first + i, [1.5, 0.25, 2.75][(first + i) % 3]!)).fill(i),
      ).flat();
    expect([[...rows(0)!], [...rows(2)!]]).toEqual([expected(0, 4), expected(4, 3)]);
  }
});

test('the identity of a selection depends on the selected samples, not on how they were specified', async () => {
  const identity = async (request: SelectionRequest) => (await selectSamples(request, dataset)).identity;
  expect(await identity({ classes: ['ant'] })).toBe(await identity({ where: 'cls = 0' }));
  expect(await identity({ classes: ['ant'] })).not.toBe(await identity({ classes: ['bee'] }));
  expect(await identity({ classes: ['ant'] })).not.toBe(await identity({ classes: ['ant'], weights: { ant: 2 } }));
});
