import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { ColumnValue } from '../../sample/label-column.js';
import { entryOf, isTableLayout, layoutNames, layoutOf, openShard, type TableLayoutName } from '../registry.js';
import { decodeTable, encodeTable, type Table, type TableColumn } from './table.js';

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-table-'));
afterAll(() => rmSync(folder, { recursive: true }));

const LAYOUTS = layoutNames().filter(isTableLayout);

interface Sample {
  readonly key: string;
  readonly cls: number;
  readonly fields: ReadonlyMap<string, Buffer>;
  readonly labels: ReadonlyMap<string, ColumnValue>;
}

const column = (name: string, holds: TableColumn['holds'], of = name, isOptional = true): TableColumn => ({
  ...{ name, holds, of, isOptional },
});

/** Images with two names, fields that are missing or empty in some samples, labels of all types and none. */
const tableIn = (name: TableLayoutName, names: { image: string; cls: string }): Table => ({
  classes: ['cat', 'dog'],
  columns: [
    column('__key__', 'key', '', false),
    column(names.image, 'image', ''),
    column('__ending__', 'ending', ''),
    column(names.cls, 'class', '', false),
    column('caption.txt', 'text'),
    column('mask.png', 'image'),
    column('meta.json', 'json'),
    column('raw.bin', 'bytes'),
    column('where_', 'string', 'where'),
    column('count', 'int'),
    column('score', name === 'tfrecord' ? 'int' : 'double'),
    column('odd', 'bool'),
    column('name', 'string', 'name', false),
    column('rank', 'int', 'rank', false),
  ],
});

const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.integer({ min: 8000, max: 20_000 }).map((length) => new Uint8Array(length).fill(length)),
);
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const sample: fc.Arbitrary<Omit<Sample, 'key'>> = fc
  .record({
    cls: fc.integer({ min: -1, max: 0x7fffffff }),
    image: optional(fc.tuple(fc.constantFrom('jpg', 'png'), payload)),
    caption: optional(text),
    mask: optional(payload),
    meta: optional(fc.json()),
    raw: payload,
    labels: fc.record({
      where: optional(text),
      count: optional(fc.maxSafeInteger()),
      score: optional(fc.integer()),
      odd: optional(fc.boolean()),
      name: text,
      rank: fc.maxSafeInteger(),
    }),
  })
  .map(({ cls, image, caption, mask, meta, raw, labels }) => {
    const fields: [string, string | Uint8Array | null][] = [
      ...(image === null ? [] : [image]),
      ...Object.entries({ 'caption.txt': caption, 'mask.png': mask, 'meta.json': meta, 'raw.bin': raw }),
    ];
    const there = fields.filter((field): field is [string, string] => field[1] !== null);
    const sorted = there
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, bytes]) => [name, Buffer.from(bytes)] as const);
    return { cls, fields: new Map(sorted), labels: new Map(Object.entries(labels)) };
  });
/** Comparing text is much faster than comparing bytes one by one. */
const asText = ({ fields, ...sample }: Sample) => ({
  ...sample,
  fields: Array.from(fields, ([name, bytes]) => [name, bytes.toString('latin1')]),
});
const samples = fc
  .array(sample, { maxLength: 12 })
  .map((all) => all.map((one, i): Sample => ({ key: `ö/${i}.x`, ...one })));

async function write(name: TableLayoutName, file: string, all: readonly Sample[]) {
  const layout = await layoutOf(name);
  const fd = openSync(file, 'w+');
  const written = layout.ofTable(tableIn(name, layout.columnNames));
  const writer = written.createWriter(fd, path.basename(file), undefined, all.length);
  for (const { key, cls, fields, labels } of all) {
    const sizes = [...fields].map(([field, bytes]) => ({ name: field, bytes: bytes.length }));
    writer.describe?.({ cls, label: (label) => labels.get(label) ?? null });
    // A sample that was begun and discarded leaves nothing.
    writer.begin(key, sizes);
    writer.discard();
    const places = writer.begin(key, sizes);
    for (const [i, bytes] of [...fields.values()].entries()) places[i]!.set(bytes);
    writer.commit([...fields.values()].map((bytes) => crc32(bytes)));
  }
  const finished = writer.finish();
  closeSync(fd);
  return finished;
}

test.each(LAYOUTS)('keys, fields, classes and labels that are written as %s are read back unchanged', async (name) => {
  const file = path.join(folder, `train${entryOf(name).extension}`);
  await fc.assert(
    fc.asyncProperty(samples, async (given) => {
      // Parquet stores names of classes, and a number without a name is damage.
      const all = name === 'parquet' ? given.map((one) => ({ ...one, cls: Math.min(one.cls, 1) })) : given;
      const finished = await write(name, file, all);
      const bytes = readFileSync(file);
      expect([finished.bytes, finished.crc32]).toEqual([bytes.length, crc32(bytes)]);
      const source = await openShard(name, file);
      const found: Sample[] = [];
      const offsets: number[] = [];
      const spans: [number, number][] = [];
      for await (const batch of (await layoutOf(name)).samples(source)) {
        for (const { key, cls, fields, labels, offset, bytes: length } of batch) {
          const payloads = new Map<string, Buffer>();
          for (const field of fields.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
            const target = Buffer.alloc(field.bytes);
            expect(await source.readAt(field.offset, target)).toBe(field.bytes);
            payloads.set(field.name, target);
            offsets.push(field.offset);
          }
          spans.push([offset, length]);
          found.push({ key, cls: cls!, fields: payloads, labels: labels! });
        }
      }
      await source.close();
      expect(found.map(asText)).toEqual(all.map(asText));
      expect(offsets).toEqual([...finished.payloadOffset]);
      expect(spans).toEqual(Array.from(finished.sampleOffset, (offset, i) => [offset, finished.sampleBytes[i]]));
    }),
    // Each file is flushed to disk, which may take a tenth of a second.
    { numRuns: 15 },
  );
});

test('a Parquet file with several row groups can be read from any of them', async () => {
  const file = path.join(folder, 'groups.parquet');
  const raw = (i: number) => Buffer.alloc(i === 2 ? 17 << 20 : 7 << 20, i);
  const all = Array.from({ length: 6 }, (_, i): Sample => {
    const labels = new Map<string, ColumnValue>(['where', 'count', 'score', 'odd'].map((name) => [name, null]));
    labels.set('name', `n${i}`).set('rank', i);
    return { key: String(i), cls: i, fields: new Map([['raw.bin', raw(i)]]), labels };
  });
  const { payloadOffset } = await write('parquet', file, all);
  const source = await openShard('parquet', file);
  const part = Buffer.alloc(9);
  for (const i of [5, 2, 0, 3]) {
    expect(await source.readAt(payloadOffset[i]! + (5 << 20), part)).toBe(9);
    expect(part).toEqual(Buffer.alloc(9, i));
  }
  const found: string[] = [];
  for await (const batch of (await layoutOf('parquet')).samples(source)) found.push(...batch.map(({ key }) => key));
  expect(found).toEqual(['0', '1', '2', '3', '4', '5']);
  await source.close();
});

test.each(LAYOUTS)(
  'text or JSON that is not valid in a column of %s is rejected with its field and key',
  async (name) => {
    const layout = await layoutOf(name);
    const fd = openSync(path.join(folder, 'refused'), 'w+');
    const columns = [column('__key__', 'key', '', false), column('a.txt', 'text', 'a.txt', false)];
    const writer = layout.ofTable({ columns, classes: [] }).createWriter(fd, 'refused', undefined, 1);
    const refused = () => {
      const [place] = writer.begin('k', [{ name: 'a.txt', bytes: 2 }]);
      place!.set([0xff, 0xfe]);
      writer.commit();
    };
    if (name === 'tfrecord') expect(refused).not.toThrow();
    else expect(refused).toThrow('refused: field "a.txt" of sample "k" is not UTF-8');
    closeSync(fd);
  },
);

test('descriptions of columns in a shard are accepted only in the exact form in which they are written', () => {
  const table = tableIn('mds', { image: 'image', cls: 'label' });
  const found = decodeTable(encodeTable(table));
  expect([...found!.values()]).toEqual(table.columns);
  const wrong = [
    column('a', 'bytes', '../a'),
    column('a', 'bytes', 'a/b'),
    { ...column('a', 'bytes'), holds: 'code' },
    { name: 'a' },
  ];
  for (const one of wrong) expect(decodeTable(JSON.stringify({ version: 1, columns: [one] }))).toBeNull();
  expect(decodeTable(JSON.stringify({ version: 2, columns: [] }))).toBeNull();
  for (const other of [undefined, null, 'x', '{}', 7, []]) expect(decodeTable(other)).toBeNull();
});
