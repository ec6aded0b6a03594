import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ColumnValue, type ShardIndex, writeShardIndex } from '@shardtool/format';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pythonWith, runPython } from './python.js';

const python = pythonWith('pandas', 'pyarrow', 'duckdb');
const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-index-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** `rows` samples, every third without a class, and each label null in some rows. */
function indexOf(rows: number, first: number): ShardIndex {
  const numbers = Array.from({ length: rows }, (_, row) => first + row);
  const floats = (value: (n: number) => number) => Float64Array.from(numbers, value);
  const hasClass = (n: number) => n % 3 !== 0;
  const labels: [string, ColumnValue[]][] = [
    ['split', numbers.map((n) => ['train', 'Prüfung', null][n % 3]!)],
    ['rating', numbers.map((n) => (n % 2 === 0 ? 2 ** 53 - 1 - n : null))],
    ['score', numbers.map((n) => (n % 5 === 0 ? null : n / 8))],
    ['checked', numbers.map((n) => (n % 7 === 0 ? null : n % 2 === 0))],
    ['nothing', numbers.map(() => null)],
  ];
  return {
    samples: rows,
    key: numbers.map((n) => `cat/${n}`),
    source: numbers.map((n) => `cat/${n}-日.jpg`),
    offset: floats((n) => 2 ** 40 + n * 51_200),
    bytes: floats(() => 51_200),
    fields: new Map([
      [
        'cls',
        {
          offset: floats((n) => (hasClass(n) ? 2 ** 40 + n * 51_200 + 512 : -1)),
          bytes: floats((n) => (hasClass(n) ? 1 : 0)),
          crc32: Uint32Array.from(numbers, (n) => (hasClass(n) ? 0xffffffff - n : 0)),
        },
      ],
      [
        'jpg',
        {
          offset: floats((n) => 2 ** 40 + n * 51_200 + 1536),
          bytes: floats((n) => 40_000 + n),
          crc32: Uint32Array.from(numbers, (n) => Math.imul(n, 0x9e3779b1)),
        },
      ],
    ]),
    width: Int32Array.from(numbers, (n) => 300 + (n % 200)),
    height: Int32Array.from(numbers, () => 375),
    orientation: Uint8Array.from(numbers, (n) => 1 + (n % 8)),
    cls: Int32Array.from(numbers, (n) => (hasClass(n) ? n % 10 : -1)),
    columns: new Map(labels),
    columnTypes: new Map([['checked', 'bool']]),
  };
}

/** One object per row, as the Python programs print them. */
function rowsOf(index: ShardIndex): Record<string, ColumnValue>[] {
  return index.key.map((key, row) => {
    const cells: Record<string, ColumnValue> = { key, source: index.source[row]! };
    for (const name of ['offset', 'bytes'] as const) cells[name] = index[name][row]!;
    for (const [name, { offset, bytes, crc32 }] of index.fields) {
      const present = offset[row]! >= 0;
      cells[`${name}.offset`] = present ? offset[row]! : null;
      cells[`${name}.bytes`] = present ? bytes[row]! : null;
      cells[`${name}.crc32`] = present ? crc32![row]! : null;
    }
    for (const name of ['width', 'height', 'orientation', 'cls'] as const) cells[name] = index[name][row]!;
    for (const [name, values] of index.columns) cells[name] = values[row]!;
    return cells;
  });
}

const indexes = [indexOf(700, 0), indexOf(1, 700), indexOf(0, 701), indexOf(64, 701)];
const paths = indexes.map((_, shard) => path.join(folder, `00000${shard}.parquet`));
const all = indexes.flatMap(rowsOf);

interface Answer {
  readonly types: Record<string, string>;
  readonly rows: Record<string, ColumnValue>[];
}

describe.skipIf(python === null)('with Python', () => {
  beforeAll(async () => {
    for (const [shard, index] of indexes.entries()) await writeShardIndex(paths[shard]!, index);
  });

  test('pandas reads every index with correct names, types and values', () => {
    // Nullable types, because numpy's integers have no null and would become floats.
    const program = `
import json, sys, pandas
frames = [pandas.read_parquet(path, dtype_backend='numpy_nullable') for path in json.load(sys.stdin)]
rows = [row for frame in frames for row in frame.astype(object).where(frame.notna(), None).to_dict('records')]
print(json.dumps({'types': {name: str(kind) for name, kind in frames[0].dtypes.items()}, 'rows': rows}))`;
    const { types, rows } = runPython<Answer>(program, paths);
    expect(types).toMatchObject({
      ...{ offset: 'Int64', bytes: 'Int64', 'cls.offset': 'Int64', 'cls.bytes': 'Int64', 'cls.crc32': 'UInt32' },
      ...{ 'jpg.offset': 'Int64', 'jpg.bytes': 'Int64', 'jpg.crc32': 'UInt32' },
      ...{ width: 'Int32', height: 'Int32', orientation: 'Int32', cls: 'Int32' },
      ...{ rating: 'Int64', score: 'Float64', checked: 'boolean' },
    });
    expect(types.key).toMatch(/^string/);
    expect(types.split).toMatch(/^string/);
    expect(Object.keys(types)).toEqual(Object.keys(all[0]!));
    expect(rows).toEqual(all);
  });

  /** All queries of DuckDB together, because its start takes most of the time. */
  let duckdb: Answer & { readonly sums: number[][] };
  beforeAll(() => {
    const program = `
import json, sys, duckdb
paths = {'paths': json.load(sys.stdin)}
table = duckdb.sql("select * from read_parquet($paths)", params=paths)
rows = [dict(zip(table.columns, row)) for row in table.fetchall()]
query = 'select cls, count(*) as samples, sum("jpg.bytes") as bytes from read_parquet($paths) where width >= 400 group by cls order by cls'
sums = [list(map(int, row)) for row in duckdb.sql(query, params=paths).fetchall()]
print(json.dumps({'types': dict(zip(table.columns, map(str, table.types))), 'rows': rows, 'sums': sums}))`;
    duckdb = runPython(program, paths);
  });

  test('DuckDB reads the indexes of a dataset as one table, with correct names, types and values', () => {
    const { types, rows } = duckdb;
    expect(types).toEqual({
      ...{ key: 'VARCHAR', source: 'VARCHAR', offset: 'BIGINT', bytes: 'BIGINT' },
      ...{ 'cls.offset': 'BIGINT', 'cls.bytes': 'BIGINT', 'cls.crc32': 'UINTEGER' },
      ...{ 'jpg.offset': 'BIGINT', 'jpg.bytes': 'BIGINT', 'jpg.crc32': 'UINTEGER' },
      ...{ width: 'INTEGER', height: 'INTEGER', orientation: 'INTEGER', cls: 'INTEGER' },
      ...{ split: 'VARCHAR', rating: 'BIGINT', score: 'DOUBLE', checked: 'BOOLEAN', nothing: 'VARCHAR' },
    });
    expect(rows).toEqual(all);
  });

  test('a query over all indexes finds a class with few photos', () => {
    const wide = all.filter((row) => (row.width as number) >= 400);
    const classes = [...new Set(wide.map((row) => row.cls as number))].sort((a, b) => a - b);
    const expected = classes.map((cls) => {
      const members = wide.filter((row) => row.cls === cls);
      return [cls, members.length, members.reduce((sum, row) => sum + (row['jpg.bytes'] as number), 0)];
    });
    expect(duckdb.sums).toEqual(expected);
  });
});
