import type { ShardIndex } from '@shardtool/format';
import { expect, test } from 'vitest';
import { WEIGHTS_STREAM, word } from '../order/words.js';
import { checkEpochSamples, type SelectionRequest, selectSamples } from './selection.js';

/** Shards of 4, 0 and 3 samples; keys are s0, s1, ...; classes go round. */
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

async function rowsOf(request: SelectionRequest, randomness = { seed: 1, epoch: 0 }) {
  const selection = (await selectSamples(request, dataset)).draw(randomness);
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

test('classes are selected by name and by number', async () => {
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

test('what may be a name or a number is refused, and what is given twice', async () => {
  const numbered = { ...dataset, classNames: ['10', '2', '0'] };
  await expect(selectSamples({ weights: { 2: 5 } }, numbered)).rejects.toThrow(
    'The weight of "2" may be that of the class of this name (number 1) or of class number 2 ("0"): give pairs',
  );
  await expect(selectSamples({ weights: { 1: 5 } }, dataset)).rejects.toThrow(
    'There is no class "1" (text is a name: the class number 1 is the number 1; as the key of a weight it stands in a Map',
  );
  await expect(selectSamples({ classes: ['1'] }, dataset)).rejects.toThrow('no class "1" (text is a name');
  const twice = [['bee', 2] as const, [1, 3] as const];
  await expect(selectSamples({ weights: twice }, dataset)).rejects.toThrow('weight of class 1 is given twice');
});

test('an unknown class is refused with the classes there are', async () => {
  await expect(selectSamples({ classes: ['bea'] }, dataset)).rejects.toThrow(
    'no class "bea": the classes are ant, bee, cow',
  );
  await expect(selectSamples({ classes: [3] }, dataset)).rejects.toThrow('no class 3');
  await expect(selectSamples({ weights: { bea: 2 } }, dataset)).rejects.toThrow('no class "bea"');
});

test('keys are selected in the order on disk, whatever the order of the list', async () => {
  expect(await rowsOf({ keys: ['s6', 's0', 's3', 's0'] })).toEqual([[0, 3], null, [2]]);
});

test('a key that is not in the dataset is refused by name', async () => {
  await expect(selectSamples({ keys: ['s1', 's7', 's9'] }, dataset)).rejects.toThrow(
    '2 of 3 are not in the dataset, "s7"',
  );
});

test('an expression selects by the columns of the index, together with the rest', async () => {
  expect(await rowsOf({ where: 'width >= 200' })).toEqual([[2, 3], null, null]);
  expect(await rowsOf({ where: 'width >= 200', classes: ['ant'] })).toEqual([[3], null, [2]]);
});

test('a selection without samples is refused', async () => {
  await expect(selectSamples({ where: 'width > 10000' }, dataset)).rejects.toThrow('No sample is selected');
  await expect(selectSamples({ weights: { ant: 0, bee: 0, cow: 0 } }, dataset)).rejects.toThrow(
    'No sample is selected',
  );
});

test('a sample of whole weight comes so often, one after the other', async () => {
  expect(await rowsOf({ weights: { ant: 3, cow: 0 } })).toEqual([[0, 0, 0, 1, 3, 3, 3], null, [0, 2, 2, 2]]);
});

test('the weight of a sample may be any function of its key and class', async () => {
  const weights = ({ key, cls }: { key: string; cls: number }) => (key === 's0' ? 2 : cls === 1 ? 1 : 0);
  expect(await rowsOf({ weights })).toEqual([[0, 0, 1], null, [0]]);
  const wrong = () => Number.NaN;
  await expect(selectSamples({ weights: wrong }, dataset)).rejects.toThrow('The weight of sample "s0" is NaN');
});

test('a fraction decides by the word of the sample, so that its draw depends on seed, epoch and number alone', async () => {
  for (const randomness of [
    { seed: 2 ** 52 + 3, epoch: 0 },
    { seed: 5, epoch: 2 ** 32 - 1 },
  ]) {
    const times = (number: number, weight: number) =>
      Math.floor(weight) + (word(randomness, WEIGHTS_STREAM, 0, number) * 2 ** -32 < weight % 1 ? 1 : 0);
    const rows = await rowsOf({ weights: { ant: 1.5, bee: 0.25, cow: 2.75 } }, randomness);
    const expected = (first: number, count: number) =>
      Array.from({ length: count }, (_, i) =>
        Array(times(first + i, [1.5, 0.25, 2.75][(first + i) % 3]!)).fill(i),
      ).flat();
    expect(rows).toEqual([expected(0, 4), null, expected(4, 3)]);
    const subset = await rowsOf({ weights: { ant: 1.5, bee: 0.25, cow: 2.75 }, classes: ['cow'] }, randomness);
    expect(subset).toEqual([rows[0]!.filter((row) => row === 2), null, rows[2]!.filter((row) => row === 1)]);
  }
});

test('an array has the weight of each sample by its number, and of no more and no fewer', async () => {
  const each = [0, 1, 2, 0, 0, 3, 0];
  expect(await rowsOf({ weights: each })).toEqual([[1, 2, 2], null, [1, 1, 1]]);
  expect(await rowsOf({ weights: Float32Array.from(each), classes: ['cow'] })).toEqual([[2, 2], null, [1, 1, 1]]);
  await expect(selectSamples({ weights: [1, 2] }, dataset)).rejects.toThrow(
    'weights has 2 numbers and the dataset 7 samples: give one for each, in the order on disk.',
  );
  await expect(selectSamples({ weights: [1, 1, 1, 1, 1, -1, 1] }, dataset)).rejects.toThrow(
    'The weight of sample number 5 is -1',
  );
});

test('over many epochs a sample comes as often as its weight says', async () => {
  const subset = await selectSamples({ weights: { ant: 0.3, bee: 1, cow: 1.7 } }, dataset);
  const times = new Float64Array(7);
  for (let epoch = 0; epoch < 3000; epoch++) {
    const { rows } = subset.draw({ seed: 11, epoch });
    for (const row of rows(0)!) times[row]!++;
    for (const row of rows(2)!) times[4 + row]!++;
  }
  const means = Array.from(times, (n) => n / 3000);
  for (const [n, mean] of means.entries()) expect(Math.abs(mean - [0.3, 1, 1.7][n % 3]!)).toBeLessThan(0.03);
});

test('epochSamples goes with whole weights, and refuses others with the way out', async () => {
  const whole = await selectSamples({ weights: { ant: 3 } }, dataset);
  const fractional = await selectSamples({ weights: { ant: 1.5 } }, dataset);
  expect(() => checkEpochSamples(whole, 100)).not.toThrow();
  expect(() => checkEpochSamples(fractional, undefined)).not.toThrow();
  expect(() => checkEpochSamples(fractional, 100)).toThrow('multiply them until they are whole');
});

test('the identity of a selection is that of what is selected, not of how it was said', async () => {
  const identity = async (request: SelectionRequest) => (await selectSamples(request, dataset)).identity;
  expect(await identity({ classes: ['ant'] })).toBe(await identity({ where: 'cls = 0' }));
  expect(await identity({ classes: ['ant'] })).not.toBe(await identity({ classes: ['bee'] }));
  expect(await identity({ classes: ['ant'] })).not.toBe(await identity({ classes: ['ant'], weights: { ant: 2 } }));
});
