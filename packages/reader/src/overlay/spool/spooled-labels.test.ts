import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ColumnValue, readLabelRows } from '@shardtool/format';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomOf } from '../../../../../test/random.js';
import { type LabelFile, SpooledLabels } from './spooled-labels.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spooled-labels-'));
});
afterAll(() => {
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});

/** Finds the labels of all samples, shard by shard. */
async function found(shards: readonly (readonly string[])[], rows: readonly object[], limits: [number, number]) {
  const lines = rows.map((row) => JSON.stringify(row));
  const file: LabelFile = {
    location: 'labels.jsonl',
    hasClasses: true,
    rows: () => readLabelRows('labels.jsonl', [lines.slice(0, 7), lines.slice(7)], ['key', 'path'] as const),
  };
  const identified = {
    counts: shards.map(({ length }) => length),
    async *idsOfShards() {
      yield* shards;
    },
  };
  const [pageSamples, heldRows] = limits;
  const labels = await SpooledLabels.read(file, identified, folder, { pageSamples, heldRows });
  try {
    const values: [string, string | undefined, ColumnValue[]][] = [];
    for (const [shard, keys] of shards.entries()) {
      const page = labels.pageOf(shard);
      for (const key of keys) {
        const row = page.rowOf(key);
        if (row === undefined) continue;
        const columns = [...page.labels.columns.values()].map((column) => column[row]!);
        values.push([key, page.labels.cls?.[row], columns]);
      }
    }
    return { values, lost: await labels.lost(), classes: [...labels.classes].sort() };
  } finally {
    labels.close();
  }
}

test('labels that are sorted on disk are found by each shard, with any amount of memory', async () => {
  const random = randomOf('spooled labels');
  const below = (count: number) => Math.floor(random() * count);
  for (let round = 0; round < 30; round++) {
    let made = 0;
    const shards = Array.from({ length: 1 + below(9) }, () => Array.from({ length: below(8) }, () => `é/${made++}`));
    const keys = shards.flat().filter(() => random() < 0.7);
    if (keys.length === 0) continue;
    const model = new Map(
      keys.map((key) => [key, { key, class: ['a', 'b', ''][below(3)]!, n: below(5), t: random() < 0.5 ? 'x' : null }]),
    );
    const rows = [...model.values()].sort(() => random() - 0.5);
    const expected = keys.map((key) => [key, model.get(key)!.class, [model.get(key)!.n, model.get(key)!.t]]);
    const result = await found(shards, rows, [1 + below(12), 1 + below(10)]);
    expect(result.values).toEqual(expected);
    expect(result.lost).toBeNull();
    expect(result.classes).toEqual([...new Set(rows.map((row) => row.class))].sort());
  }
});

test('samples with the same key all get its label, in all shards, and a row without a sample is reported', async () => {
  const shards = [['a', 'b'], ['a'], [], ['c', 'a']];
  const rows = [
    { key: 'c', v: 1 },
    { key: 'unknown', v: 2 },
    { key: 'a', v: 3 },
  ];
  const { values, lost } = await found(shards, rows, [1, 1]);
  expect(values.map(([key, , [v]]) => [key, v])).toEqual([
    ['a', 3],
    ['a', 3],
    ['c', 1],
    ['a', 3],
  ]);
  expect(lost).toEqual({ rows: 3, count: 1, first: 'unknown' });
});

test('a key that is repeated far from its first row throws an error with both lines', async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({ key: `k${i % 19}`, v: i }));
  const shards = Array.from({ length: 10 }, (_, shard) => [`k${2 * shard}`, `k${2 * shard + 1}`]);
  await expect(found(shards, rows, [2, 3])).rejects.toThrow('labels.jsonl:20 repeats the key "k0" of line 1');
});
