import path from 'node:path';
import { expect, test } from 'vitest';

const { mergeReports, summarise } = await import(path.resolve('bench/peers/report.mjs'));

const photos = { count: 10, bytes: 520_000, pixels: 1_875_000 };
const settings = { workers: 2, batch: 256, epochs: 2, rounds: 1 };

function piece(rates: Record<string, number>, missing: object[] = []) {
  const ids = Object.keys(rates);
  const result = (imagesPerSecond: number) => ({ imagesPerSecond, cpuSecondsPer1000: 2, batchWaitP50Ms: 1 });
  return {
    photos,
    settings,
    missing,
    memory: ids.map((id) => ({ id, peakMemoryBytes: rates[id] })),
    runs: ids.map((id) => ({ id, round: 0, result: result(rates[id]!) })),
  };
}

test('merged pieces compare each loader with the shardtool of the same piece, not of a faster or slower one', () => {
  const report = mergeReports([
    piece({ shardtool: 1000, dali: 500 }),
    piece({ shardtool: 100, grain: 20, dali: 25 }),
    piece({ shardtool: 400, dali: 100 }),
  ]);
  const rows = new Map(summarise(report).map((row: { id: string }) => [row.id, row]));
  expect(rows.get('dali')).toMatchObject({ timesSlower: 4, rounds: 3, peakMemoryBytes: 500, imagesPerSecond: 100 });
  expect(rows.get('grain')).toMatchObject({ timesSlower: 5, rounds: 1 });
  expect(rows.get('shardtool')).toMatchObject({ timesSlower: 1, imagesPerSecond: 400, megapixelsPerSecond: 75 });
  expect(report.settings.rounds).toBe(3);
});

test('a loader that fails in one piece and runs in another is not listed as missing', () => {
  const failed = [{ id: 'dali', reason: 'cut off' }];
  expect(mergeReports([piece({ dali: 1 }), piece({ shardtool: 2 }, failed)]).missing).toEqual([]);
  expect(mergeReports([piece({ shardtool: 2 }, failed)]).missing).toEqual(failed);
});

test('pieces with other photos or other settings are not merged', () => {
  const other = { ...piece({ dali: 1 }), settings: { ...settings, batch: 128 } };
  expect(() => mergeReports([piece({ dali: 1 }), other])).toThrow('have different settings');
});
