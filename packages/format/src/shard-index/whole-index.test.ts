import { expect, test } from 'vitest';
import { FIXED_COLUMNS } from './columns.js';
import { IndexRows } from './index-rows.js';
import { INDEX_PARTS, rowsOfIndex, unknownColumns } from './whole-index.js';

function indexOf(keys: readonly string[]) {
  const rows = new IndexRows();
  for (const [i, key] of keys.entries()) {
    const fields = [{ name: 'jpg', bytes: 10 + i }];
    rows.add({ key, source: `${key}.jpg`, fields, crc32: [i], width: i, height: 2 * i, orientation: 1, cls: i });
  }
  const places = Float64Array.from(keys, (_, i) => 100 * i);
  const finished = { sampleOffset: places, sampleBytes: places, payloadOffset: places };
  return { ...rows.toIndex(finished), columns: new Map([['score', keys.map((_, i) => i / 2)]]) };
}

test('a range of rows has every column, with the values of these rows only', () => {
  const index = indexOf(['a', 'b', 'c', 'd']);
  const rows = rowsOfIndex(index, 1, 3);
  expect(rows.samples).toBe(2);
  for (const [name] of FIXED_COLUMNS) expect(rows[name], name).toEqual(index[name].slice(1, 3));
  const { offset, bytes, crc32 } = rows.fields.get('jpg')!;
  expect([offset, bytes, crc32]).toEqual([Float64Array.of(100, 200), Float64Array.of(11, 12), Uint32Array.of(1, 2)]);
  expect(rows.columns.get('score')).toEqual([0.5, 1]);
  expect(rowsOfIndex(index, 0, 4)).toEqual(index);
});

test('columns of unknown values are as long as the index, and the list of parts names every part of an index', () => {
  const unknown = unknownColumns(2);
  expect(unknown).toMatchObject({ source: ['', ''], width: new Int32Array(2), cls: Int32Array.of(-1, -1) });
  const { samples: _, ...index } = indexOf(['a']);
  expect(INDEX_PARTS).toEqual(expect.arrayContaining(Object.keys(index)));
});
