import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileError, OptionError, ShardIndexError, ShardtoolError, VersionError } from '@shardtool/base';
import fc from 'fast-check';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultyServer } from '../../../../test/faulty-server.js';
import { TIMES } from '../../../../test/repetitions.js';
import { encodeParquet } from '../parquet/parquet.js';
import { seal } from '../parquet/seal.js';
import { columnsOf } from './columns.js';
import { decodeLoadedIndex, loadShardIndex } from './loaded-index.js';
import {
  type ColumnType,
  type ColumnValue,
  columnTypeOf,
  decodeShardIndex,
  encodeShardIndex,
  readShardIndex,
  type ShardIndex,
  writeShardIndex,
} from './shard-index.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shard-index-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Three samples: the second has no class, the third no image. */
const small: ShardIndex = {
  samples: 3,
  key: ['cat/1', 'dog/2', 'dog/3'],
  source: ['cat/1.jpg', 'dog/2.jpg', ''],
  offset: Float64Array.of(0, 50_176, 2 ** 40),
  bytes: Float64Array.of(50_176, 1024, 1536),
  fields: new Map([
    [
      'cls',
      {
        offset: Float64Array.of(512, -1, 2 ** 40 + 512),
        bytes: Float64Array.of(1, 0, 1),
        crc32: Uint32Array.of(4, 0, 0xf00dcafe),
      },
    ],
    [
      'jpg',
      {
        offset: Float64Array.of(1536, 50_688, -1),
        bytes: Float64Array.of(48_000, 500, 0),
        crc32: Uint32Array.of(7, 8, 0),
      },
    ],
  ]),
  width: Int32Array.of(320, 1, 0),
  height: Int32Array.of(240, 2000, 0),
  orientation: Uint8Array.of(6, 1, 1),
  cls: Int32Array.of(0, -1, 1),
  columns: new Map<string, ColumnValue[]>([
    ['split', ['train', null, 'Prüfung']],
    ['rating', [5, -(2 ** 53 - 1), null]],
    ['score', [0.5, null, 3]],
    ['checked', [true, false, null]],
  ]),
  columnTypes: new Map<string, ColumnType>([
    ['split', 'string'],
    ['rating', 'int'],
    ['score', 'double'],
    ['checked', 'bool'],
  ]),
};

const LABELS: Record<ColumnType, fc.Arbitrary<ColumnValue>> = {
  string: fc.string({ unit: 'grapheme' }),
  int: fc.maxSafeInteger().map((n) => n + 0),
  double: fc.double(),
  bool: fc.boolean(),
};

const indexes: fc.Arbitrary<ShardIndex> = fc
  .record({
    samples: fc.oneof(fc.nat({ max: 12 }), fc.nat({ max: 300 })),
    fields: fc.uniqueArray(fc.constantFrom('jpg', 'cls', 'seg.png', 'json'), { maxLength: 4 }),
    labels: fc.dictionary(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom<ColumnType>('string', 'int', 'double', 'bool'),
      { maxKeys: 3 },
    ),
  })
  .chain(({ samples, fields, labels }) => {
    const rows = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: samples, maxLength: samples });
    const floats = (value: fc.Arbitrary<number>) => rows(value).map((values) => Float64Array.from(values));
    const position = fc.oneof(fc.nat({ max: 2 ** 28 }), fc.nat({ max: Number.MAX_SAFE_INTEGER }));
    const names = Object.keys(labels).filter((name) => !(name in small) && name !== '__proto__');
    const field = rows(fc.option(fc.tuple(position, position, fc.nat({ max: 0xffffffff })))).map((cells) => ({
      offset: Float64Array.from(cells, (cell) => cell?.[0] ?? -1),
      bytes: Float64Array.from(cells, (cell) => cell?.[1] ?? 0),
      crc32: Uint32Array.from(cells, (cell) => cell?.[2] ?? 0),
    }));
    const int32 = rows(fc.integer()).map((values) => Int32Array.from(values));
    return fc.record({
      samples: fc.constant(samples),
      key: rows(fc.string({ unit: 'grapheme' })),
      source: rows(fc.string()),
      offset: floats(position),
      bytes: floats(position),
      fields: fc.tuple(...fields.map(() => field)).map((all) => new Map(fields.map((name, i) => [name, all[i]!]))),
      width: int32,
      height: int32,
      orientation: rows(fc.integer({ min: 1, max: 8 })).map((values) => Uint8Array.from(values)),
      cls: int32,
      columns: fc
        .tuple(...names.map((name) => rows(fc.option(LABELS[labels[name]!]))))
        .map((all) => new Map(names.map((name, i) => [name, all[i]!]))),
      columnTypes: fc.constant(new Map(names.map((name) => [name, labels[name]!]))),
    });
  });

test('an index is read back unchanged', () => {
  for (const decode of [decodeShardIndex, decodeLoadedIndex]) {
    expect(decode(encodeShardIndex(small), 'a.parquet')).toEqual(small);
    fc.assert(
      fc.property(indexes, (index) => {
        expect(decode(encodeShardIndex(index), 'a.parquet')).toEqual(index);
      }),
    );
  }
});

/** Decodes an index as a loader does, and then uses every column. */
function decodeEveryColumn(bytes: Uint8Array, path: string): ShardIndex {
  const index = decodeLoadedIndex(bytes, path) as ShardIndex;
  return { ...index, fields: new Map(Array.from(index.fields, ([name, columns]) => [name, { ...columns }])) };
}

test('an index of a loader decodes each column once', async () => {
  const path = join(folder, 'later.parquet');
  await writeShardIndex(path, small);
  const index = await loadShardIndex(path);
  const { key, offset } = index;
  const { crc32 } = index.fields.get('jpg')!;
  expect(index.key).toBe(key);
  expect(index.offset).toBe(offset);
  expect(index.fields.get('jpg')!.crc32).toBe(crc32);
  expect(index).toEqual(small);
});

test('an index of a loader opens if a column cannot be decoded, and using the column throws an error that names the index', () => {
  const bytes = Buffer.from(encodeShardIndex(small));
  // Snappy's length of the column.
  const keys = bytes.indexOf('cat/1');
  bytes.fill(0xff, keys - 8, keys);
  reseal(bytes);
  const index = decodeLoadedIndex(bytes, 'some/x.parquet');
  expect(index.cls).toEqual(small.cls);
  expect(() => index.key).toThrow(ShardIndexError);
  expect(() => index.key).toThrow('some/x.parquet is not a complete index');
  expect(() => decodeShardIndex(bytes, 'some/x.parquet')).toThrow(ShardIndexError);
});

test('the flags of msgpack values are read back, and are stored only if there are such values', () => {
  const cls = small.fields.get('cls')!;
  const typed = { ...small, fields: new Map([['cls', { ...cls, msgpack: Uint8Array.of(1, 0, 0) }]]) };
  expect(decodeShardIndex(encodeShardIndex(typed), 'a.parquet')).toEqual(typed);
  const untyped = { ...small, fields: new Map([['cls', { ...cls, msgpack: new Uint8Array(3) }]]) };
  expect(decodeShardIndex(encodeShardIndex(untyped), 'a.parquet').fields.get('cls')).toEqual(cls);
});

test('hyparquet reads the same columns', async () => {
  const bytes = encodeShardIndex(small);
  const file = { byteLength: bytes.length, slice: (start: number, end?: number) => bytes.slice(start, end).buffer };
  const rows = await parquetReadObjects({ file });
  expect(rows).toEqual([
    {
      ...{ key: 'cat/1', source: 'cat/1.jpg', offset: 0n, bytes: 50_176n },
      ...{
        'cls.offset': 512n,
        'cls.bytes': 1n,
        'cls.crc32': 4,
        'jpg.offset': 1536n,
        'jpg.bytes': 48_000n,
        'jpg.crc32': 7,
      },
      ...{ width: 320, height: 240, orientation: 6, cls: 0, split: 'train', rating: 5n, score: 0.5, checked: true },
    },
    {
      ...{ key: 'dog/2', source: 'dog/2.jpg', offset: 50_176n, bytes: 1024n },
      ...{
        'cls.offset': null,
        'cls.bytes': null,
        'cls.crc32': null,
        'jpg.offset': 50_688n,
        'jpg.bytes': 500n,
        'jpg.crc32': 8,
      },
      ...{
        width: 1,
        height: 2000,
        orientation: 1,
        cls: -1,
        split: null,
        rating: BigInt(-(2 ** 53 - 1)),
        score: null,
        checked: false,
      },
    },
    {
      ...{ key: 'dog/3', source: '', offset: 2n ** 40n, bytes: 1536n },
      ...{
        'cls.offset': 2n ** 40n + 512n,
        'cls.bytes': 1n,
        'cls.crc32': 0xf00dcafe,
        'jpg.offset': null,
        'jpg.bytes': null,
        'jpg.crc32': null,
      },
      ...{ width: 0, height: 0, orientation: 1, cls: 1, split: 'Prüfung', rating: null, score: 3, checked: null },
    },
  ]);
});

test('only the requested parts are decoded', async () => {
  const path = join(folder, 'parts.parquet');
  await writeShardIndex(path, small);
  expect(await readShardIndex(path, { parts: ['key'] })).toEqual({ samples: 3, key: small.key });
  const positions = await readShardIndex(path, { parts: ['offset', 'bytes', 'fields'], fields: ['jpg', 'png'] });
  expect(Object.keys(positions)).toEqual(['samples', 'offset', 'bytes', 'fields']);
  expect([...positions.fields.keys()]).toEqual(['jpg']);
  const labels = await readShardIndex(path, { parts: ['columns'], columns: ['score', 'no-such-column'] });
  expect(labels.columns).toEqual(new Map([['score', [0.5, null, 3]]]));
  expect(await readShardIndex(path)).toEqual(small);
});

test('the index of a fixed shard has the same bytes as in version 1', () => {
  const digest = createHash('sha256').update(encodeShardIndex(small)).digest('hex');
  expect(digest).toBe('465d40fd4f1554340841100a4a1a057eedbdd756d5fd691f09c002f2883d5c0a');
});

test('writing leaves no file except the index', async () => {
  const own = await mkdtemp(join(folder, 'w-'));
  await writeShardIndex(join(own, '000000.parquet'), small);
  expect(await readdir(own)).toEqual(['000000.parquet']);
  await expect(writeShardIndex(join(own, 'no-folder', 'x.parquet'), small)).rejects.toThrow(FileError);
});

test('a label column with the name of a built-in column throws an error that names it', () => {
  for (const name of ['cls', 'key', 'jpg.crc32']) {
    const index = { ...small, columns: new Map([[name, [1, 2, 3]]]), columnTypes: new Map() };
    expect(() => encodeShardIndex(index)).toThrow(new RegExp(`label column "${name}"`));
    expect(() => encodeShardIndex(index)).toThrow(OptionError);
  }
});

test('the narrowest type that can store a label column is used', () => {
  expect(columnTypeOf('x', [1, null, 2])).toBe('int');
  expect(columnTypeOf('x', [1, 2.5])).toBe('double');
  expect(columnTypeOf('x', [2 ** 53, 1])).toBe('double');
  expect(columnTypeOf('x', [null, 'a'])).toBe('string');
  expect(columnTypeOf('x', [null])).toBe('string');
  expect(columnTypeOf('x', [true])).toBe('bool');
});

test('a label column that mixes text and numbers throws an error that names it', () => {
  expect(() => columnTypeOf('rating', ['good', 5])).toThrow('label column "rating" mixes values of type string');
  const index = { ...small, columns: new Map([['rating', [1, 'x', 3]]]) };
  expect(() => encodeShardIndex(index)).toThrow(OptionError);
});

test('a missing index throws an error that names its path', async () => {
  await expect(readShardIndex(join(folder, 'none.parquet'))).rejects.toThrow(/none\.parquet/);
});

test('a file of another program is rejected with a remedy', () => {
  expect(() => decodeShardIndex(Buffer.from('PAR1 PAR1'), 'x.parquet')).toThrow(ShardIndexError);
  expect(() => decodeShardIndex(new Uint8Array(0), 'x.parquet')).toThrow(/x\.parquet.*shardtool index/);
});

test('an index of a newer version throws an error that names both versions', () => {
  const bytes = Buffer.from(encodeShardIndex(small));
  bytes.write('"version":7', bytes.indexOf('"version":1'), 'latin1');
  reseal(bytes);
  expect(() => decodeShardIndex(bytes, 'x.parquet')).toThrow(VersionError);
  expect(() => decodeShardIndex(bytes, 'x.parquet')).toThrow(/version 7.*version 1/);
});

test('a changed byte anywhere throws an error that names the index', () => {
  const whole = encodeShardIndex(small);
  for (let at = 0; at < whole.length; at++) {
    const damaged = Uint8Array.from(whole);
    damaged[at]! ^= 1 << (at & 7);
    for (const decode of [decodeShardIndex, decodeLoadedIndex]) {
      expect(() => decode(damaged, 'some/x.parquet')).toThrow(ShardIndexError);
      expect(() => decode(damaged, 'some/x.parquet')).toThrow('some/x.parquet');
    }
  }
});

test('a truncated index throws an error', () => {
  const whole = encodeShardIndex(small);
  for (let length = 0; length < whole.length; length++) {
    expect(() => decodeShardIndex(whole.subarray(0, length), 'x.parquet')).toThrow(ShardIndexError);
  }
});

test('damage under a correct checksum gives an index or a ShardtoolError', () => {
  const whole = encodeShardIndex(small);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: whole.length - 1 }), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 }),
      (changes) => {
        const damaged = Buffer.from(whole);
        for (const [at, byte] of changes) damaged[at] = byte;
        reseal(damaged);
        for (const decode of [decodeShardIndex, decodeEveryColumn]) {
          try {
            decode(damaged, 'x.parquet');
          } catch (error) {
            expect(error).toBeInstanceOf(ShardtoolError);
          }
        }
      },
    ),
    { numRuns: 400 * TIMES },
  );
});

function reseal(bytes: Buffer): void {
  const at = bytes.lastIndexOf('shardtool.crc32');
  if (at < 0) return;
  bytes.write('00000000', at + 17, 'latin1');
  seal(bytes);
}

test('an index without its optional columns opens', () => {
  const optional = ['source', 'width', 'height', 'orientation', 'cls', 'jpg.crc32', 'cls.crc32'];
  const columns = columnsOf(small).filter(({ name }) => !optional.includes(name));
  const names = { fields: [...small.fields.keys()], columns: [...small.columns.keys()] };
  const description = JSON.stringify({ version: 1, ...names });
  const bytes = encodeParquet(3, columns, new Map([['shardtool.index', description]]));
  const found = decodeShardIndex(bytes, 'old.parquet');
  expect(decodeLoadedIndex(bytes, 'old.parquet')).toEqual(found);
  expect(found).toMatchObject({ key: small.key, offset: small.offset, columns: small.columns });
  expect(found.source).toEqual(['', '', '']);
  expect([found.width, found.height]).toEqual([new Int32Array(3), new Int32Array(3)]);
  expect(found.orientation).toEqual(new Uint8Array(3));
  expect(found.cls).toEqual(Int32Array.of(-1, -1, -1));
  expect(found.fields.get('jpg')).toEqual({
    offset: small.fields.get('jpg')!.offset,
    bytes: small.fields.get('jpg')!.bytes,
  });
  expect(decodeShardIndex(encodeShardIndex(found), 'again.parquet').fields).toEqual(found.fields);
});

test('an index without keys or offsets does not open', () => {
  for (const name of ['key', 'offset', 'jpg.offset']) {
    const columns = columnsOf(small).filter((column) => column.name !== name);
    const description = JSON.stringify({ version: 1, fields: [...small.fields.keys()], columns: [] });
    const bytes = encodeParquet(3, columns, new Map([['shardtool.index', description]]));
    for (const decode of [decodeShardIndex, decodeLoadedIndex]) {
      expect(() => decode(bytes, 'cut.parquet')).toThrow(`column "${name}" is missing`);
    }
  }
});

test('a remote index of up to 256 KiB is fetched with one request', async () => {
  const texts = Array.from({ length: 2400 }, (_, i) => createHash('sha256').update(`${i}`).digest('hex'));
  const columns = new Map<string, ColumnValue[]>([['text', [texts.join(''), null, 'last']]]);
  await writeShardIndex(join(folder, 'remote.parquet'), { ...small, columns });
  const { size } = await stat(join(folder, 'remote.parquet'));
  expect(size).toBeGreaterThan(128 << 10);
  expect(size).toBeLessThan(256 << 10);
  const server = await faultyServer(folder);
  try {
    const { key } = await readShardIndex(`${server.url}/remote.parquet`, { parts: ['key'] });
    expect(key).toEqual(small.key);
    expect(server.asked).toHaveLength(1);
  } finally {
    await server.stop();
  }
});

test('an index that its server compresses has not changed: the error names the compression', async () => {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { 'content-encoding': 'br', 'content-length': 4 }).end('cut!');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    const { port } = server.address() as AddressInfo;
    for (const choice of [undefined, { parts: ['key'] }] as const) {
      const read = readShardIndex(`http://127.0.0.1:${port}/0.parquet`, choice as undefined);
      await expect(read).rejects.toThrow('0.parquet cannot be read: its server compresses it (br)');
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
