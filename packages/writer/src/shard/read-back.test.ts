import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { crc32, WriteCheckError } from '@shardtool/base';
import type { OutputLayoutName, Table } from '@shardtool/format';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { outputLayoutOf } from './layout-choice.js';
import { createShard, type FillShard } from './new-shard.js';
import { fieldOf, type NewField, putSample } from './put-sample.js';

const FACTS = { source: '', width: 1, height: 1, orientation: 1, cls: 3 };
const TABLE: Table = {
  columns: [
    { name: 'key', holds: 'key', of: '', isOptional: false },
    { name: 'cls', holds: 'text', of: 'cls', isOptional: false },
    { name: 'jpg', holds: 'bytes', of: 'jpg', isOptional: false },
    { name: 'txt', holds: 'text', of: 'txt', isOptional: false },
  ],
  classes: [],
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'shardtool-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function write(format: OutputLayoutName, fill: FillShard) {
  const table = ['parquet', 'mds', 'tfrecord'].includes(format) ? TABLE : null;
  const layout = await outputLayoutOf({ format, lmdbValues: 'sample', table });
  const target = { output: folder, layout, columnTypes: new Map(), otherIndexes: [], maxSampleBytes: 1 << 30 };
  return createShard(target, 'shard', 1, fill);
}

/** Changes a payload in the buffer while the rest of the sample is added. */
type Change = (place: Uint8Array) => void;

/** Writes a sample whose field `changed` is changed in the write buffer. */
function writeChanged(format: OutputLayoutName, imageBytes: number, changed: string, change: Change) {
  return write(format, (writer, rows) => {
    let before: Uint8Array | null = null;
    const fields = [
      fieldOf('cls', Buffer.from('3')),
      fieldOf('jpg', new Uint8Array(imageBytes).fill(7)),
      fieldOf('txt', Buffer.from('text')),
    ].map((field): NewField => {
      const put = (place: Uint8Array) => {
        const sum = field.put(place);
        if (field.name === changed) before = place;
        return sum;
      };
      return { name: field.name, bytes: field.bytes, put };
    });
    putSample(writer, rows, 'a/1', fields, () => {
      change(before!);
      return FACTS;
    });
    return new Map();
  });
}

const FORMATS = ['tar', 'msgpack', 'lmdb', 'parquet', 'mds', 'tfrecord'] as const;
const CASES = FORMATS.flatMap((format) =>
  ['cls', 'jpg', 'txt'].flatMap((field) => [20, 100_000].map((bytes) => [field, format, bytes] as const)),
);

test.each(CASES)(
  'a %s that changes between being read and being written to %s (image of %i bytes) stops the shard, and nothing of it is left',
  async (field, format, bytes) => {
    const change: Change = (place) => {
      // Still digits and still text, so that nothing else is wrong with it.
      place[0] = place[0]! ^ 1;
    };
    const error = await writeChanged(format, bytes, field, change).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WriteCheckError);
    // An MDS shard cannot be checked sample by sample before it has its final name.
    if (format !== 'mds') expect((error as Error).message).toMatch(new RegExp(`(in sample "a/1", f|F)ield "${field}"`));
    expect(readdirSync(folder, { recursive: true }).filter((name) => /shard\./.test(String(name)))).toEqual([]);
  },
);

test.each(FORMATS)('a sample that does not change after it was read is written to %s', async (format) => {
  const { file, bytes, crc32: sum } = await writeChanged(format, 100_000, 'jpg', () => undefined);
  const written = readFileSync(path.join(folder, file));
  expect([written.length, crc32(written)]).toEqual([bytes, sum]);
});

test('a shard file that another process has replaced is detected', async () => {
  const written = write('tar', (writer, rows) => {
    putSample(writer, rows, 'a/1', [fieldOf('jpg', Buffer.from('image'))], () => FACTS);
    writeFileSync(path.join(folder, 'other'), 'other');
    const [temporary] = readdirSync(folder).filter((name) => name.startsWith('shard.tar'));
    renameSync(path.join(folder, 'other'), path.join(folder, temporary!));
    return new Map();
  });
  await expect(written).rejects.toThrow(/shard\.tar differs from what was read: another file has replaced it\./);
});
