import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { EntryNameError, FileError, OptionError, ShardtoolError } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { packedName } from '../../sample/sample-name.js';
import { openSource } from '../../source.js';
import type { FinishedShard, SamplePosition } from '../layout.js';
import { encodeEntryHeaders, maxHeaderBytes } from './entry-headers.js';
import { tar } from './index.js';
import { type TarEntry, TarWalk } from './walk.js';

interface Sample {
  key: string;
  fields: { name: string; payload: Uint8Array }[];
}

const folder = mkdtempSync(join(tmpdir(), 'shardtool-tar-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(samples: readonly Sample[], path = join(folder, 'written.tar'), knowsCrc32 = false): FinishedShard {
  const fd = openSync(path, 'w');
  try {
    const writer = tar.createWriter(fd, path);
    for (const { key, fields } of samples) {
      const places = writer.begin(
        key,
        fields.map(({ name, payload }) => ({ name, bytes: payload.length })),
      );
      for (const [i, place] of places.entries()) place.set(fields[i]!.payload);
      writer.commit(knowsCrc32 ? fields.map(({ payload }) => crc32(payload)) : undefined);
    }
    return writer.finish();
  } finally {
    closeSync(fd);
  }
}

async function read(path = join(folder, 'written.tar')): Promise<SamplePosition[]> {
  const source = await openSource(path);
  try {
    const all: SamplePosition[] = [];
    for await (const samples of tar.samples(source)) all.push(...samples);
    return all;
  } finally {
    await source.close();
  }
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
const one = (key: string, text = 'x'): Sample => ({ key, fields: [{ name: 'jpg', payload: bytesOf(text) }] });

const part = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'abc_1-é日😀 '), minLength: 1, maxLength: 20 }),
  fc.nat({ max: 300 }).map((length) => 'n'.repeat(length + 1)),
);
const sample = fc.record({
  key: fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
  fields: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('cls', 'jpg', 'json', 'seg.png', 'ß'),
      payload: fc.nat({ max: 2000 }).map((length) => new Uint8Array(length).fill(length % 251)),
    }),
    { minLength: 1, selector: ({ name }) => name },
  ),
});
const shard = fc.uniqueArray(sample, { maxLength: 8, selector: ({ key }) => key });

test('random samples are read back with their keys, fields and bytes, at the positions that the writer reports', async () => {
  await fc.assert(
    fc.asyncProperty(shard, async (samples) => {
      const finished = write(samples);
      const file = readFileSync(join(folder, 'written.tar'));
      const positions = await read();
      const contents = positions.map(({ key, fields }) => ({
        key,
        fields: fields.map(({ name, offset, bytes }) => [name, file.toString('latin1', offset, offset + bytes)]),
      }));
      const expected = samples.map(({ key, fields }) => ({
        key,
        fields: fields.map(({ name, payload }) => [name, Buffer.from(payload).toString('latin1')]),
      }));
      expect(contents).toEqual(expected);
      expect(finished).toEqual({
        bytes: file.length,
        crc32: crc32(file),
        sampleOffset: Float64Array.from(positions, ({ offset }) => offset),
        sampleBytes: Float64Array.from(positions, ({ bytes }) => bytes),
        payloadOffset: Float64Array.from(positions.flatMap(({ fields }) => fields.map(({ offset }) => offset))),
      });
    }),
    { numRuns: 50 },
  );
});

test('the same samples give the same bytes', () => {
  const samples = [one('a/b', 'first'), one('ünïcode', 'second'), one('n'.repeat(300), 'third')];
  write(samples, join(folder, 'one.tar'));
  write(samples, join(folder, 'two.tar'));
  expect(readFileSync(join(folder, 'one.tar'))).toEqual(readFileSync(join(folder, 'two.tar')));
});

test('with known checksums of payloads, the checksum of the file is the same', () => {
  const sizes = [0, 1, 8191, 8192, 8193, 70_000, 5, 1_200_000, 40_000];
  const samples = sizes.map((bytes, i) => ({
    key: `k${i}`,
    fields: [
      { name: 'cls', payload: bytesOf(String(i)) },
      { name: 'jpg', payload: new Uint8Array(bytes).map((_, at) => (at * 31) % 253) },
      { name: 'png', payload: new Uint8Array(10_000 + i).fill(i) },
    ],
  }));
  const path = join(folder, 'known.tar');
  expect(write(samples, path, true)).toEqual(write(samples));
  expect(write(samples, path, true).crc32).toBe(crc32(readFileSync(path)));
});

test('the bytes of a small shard equal those of version 1', () => {
  const finished = write([
    {
      key: 'cats/cat_1',
      fields: [
        { name: 'cls', payload: bytesOf('0') },
        { name: 'jpg', payload: new Uint8Array(600).fill(7) },
      ],
    },
    one('köln/日本'),
    one(`${'d/'.repeat(60)}deep`),
    one('n'.repeat(200)),
  ]);
  expect([finished.bytes, finished.crc32]).toEqual([8704, 179964624]);
});

test('a name of more than 100 bytes is stored with the prefix, or in a pax record if it does not fit', () => {
  write([one(`${'d/'.repeat(60)}deep`), one('n'.repeat(200))]);
  const file = readFileSync(join(folder, 'written.tar'));
  expect(String.fromCharCode(file[156]!)).toBe('0');
  expect(file.toString('latin1', 345, 465)).toBe('d/'.repeat(60).slice(0, -1).padEnd(120, '\0'));
  expect(String.fromCharCode(file[1024 + 156]!)).toBe('x');
});

test('a discarded sample is not in the file, whether another one follows or not', () => {
  const path = join(folder, 'discarded.tar');
  const fd = openSync(path, 'w');
  const writer = tar.createWriter(fd, path);
  writer.begin('bad', [{ name: 'jpg', bytes: 5000 }])[0]!.fill(0xbb);
  writer.discard();
  writer.begin('a', [{ name: 'jpg', bytes: 1 }])[0]!.set(bytesOf('x'));
  writer.commit();
  writer.begin('begun', [{ name: 'jpg', bytes: 5000 }])[0]!.fill(0xbb);
  const finished = writer.finish();
  closeSync(fd);
  expect(finished).toEqual(write([one('a')]));
  expect(readFileSync(path)).toEqual(readFileSync(join(folder, 'written.tar')));
});

test('padding is zeros even if the buffer contained a larger sample before', () => {
  const large = { key: 'large', fields: [{ name: 'jpg', payload: new Uint8Array(900_000).fill(0xcc) }] };
  write([large, one('a'), { ...large, key: 'large2' }, one('b')]);
  const file = readFileSync(join(folder, 'written.tar'));
  expect(file.length).toBe(2 * (512 + 900_096) + 2 * 1024 + 1024);
  expect(file.subarray(512 + 900_096 + 513, 512 + 900_096 + 1024).every((byte) => byte === 0)).toBe(true);
});

test('samples larger than the buffer, and samples that exactly fill it, are written completely', async () => {
  const samples = [2 ** 20 - 4096, 3 * 2 ** 20 + 1, 10, 2 ** 20, 2 ** 21].map((length, i) => ({
    key: `s${i}`,
    fields: [{ name: 'jpg', payload: new Uint8Array(length).fill(i + 1) }],
  }));
  const finished = write(samples);
  const file = readFileSync(join(folder, 'written.tar'));
  expect(finished.crc32).toBe(crc32(file));
  const positions = await read();
  expect(positions.map(({ fields }) => fields[0]!.bytes)).toEqual(
    samples.map(({ fields }) => fields[0]!.payload.length),
  );
  for (const [i, { fields }] of positions.entries()) {
    const { offset, bytes } = fields[0]!;
    expect(file.subarray(offset, offset + bytes).every((byte) => byte === i + 1)).toBe(true);
  }
});

test('a file of 8 GiB or more has its size in a pax record', () => {
  const bytes = 9 * 2 ** 30;
  const name = 'big.bin';
  const target = Buffer.alloc(maxHeaderBytes(name));
  const payloadAt = encodeEntryHeaders(target, 0, name, bytes);
  expect(target.toString('latin1', 512, 512 + 19)).toBe('19 size=9663676416\n');
  const walk = new TarWalk('a.tar', payloadAt + bytes + 1024);
  const entries: TarEntry[] = [];
  walk.advance(target.subarray(0, payloadAt), entries);
  expect(entries).toEqual([{ name, start: 0, offset: 1536, bytes }]);
});

test('a key or field that would not read back is rejected, and so is a sample with no fields or a repeated one', () => {
  const writer = tar.createWriter(-1, 'a.tar');
  const jpg = [{ name: 'jpg', bytes: 1 }];
  for (const key of ['a.b', 'd/a.b', '', 'a/', '/a', '../a', 'a\0', 'a\ud800', '.a']) {
    expect(() => writer.begin(key, jpg), key).toThrowError(EntryNameError);
  }
  for (const name of ['', 'JPG', 'a/b', '\0', '\ud800']) {
    expect(() => writer.begin('a', [{ name, bytes: 1 }]), name).toThrowError(EntryNameError);
  }
  expect(() => writer.begin('a', [])).toThrowError(OptionError);
  expect(() => writer.begin('a', [...jpg, ...jpg])).toThrowError(OptionError);
});

test('every name that packing produces can be written', () => {
  const writer = tar.createWriter(-1, 'a.tar');
  const anything = fc.array(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(anything, (parts) => {
      const path = parts.map((text) => text.replace(/[/\0]/g, '_')).join('/');
      const name = packedName(path);
      if (name === null || path.split('/').some((text) => text === '..')) return;
      expect(writer.begin(name.key, [{ name: name.field, bytes: 1 }])).toHaveLength(1);
      writer.discard();
    }),
  );
});

test('a sample that is too large for any memory throws an error that names it', () => {
  const writer = tar.createWriter(-1, 'a.tar');
  const begin = () => writer.begin('a', [{ name: 'bin', bytes: 2 ** 50 }]);
  expect(begin).toThrowError(ShardtoolError);
  expect(begin).toThrowError('sample "a" needs');
});

test('a failed write throws an error with the path, in finish at the latest', () => {
  write([one('a')]);
  const path = join(folder, 'written.tar');
  const fd = openSync(path, 'r');
  const writer = tar.createWriter(fd, path);
  writer.begin('a', [{ name: 'jpg', bytes: 1 }]);
  writer.commit();
  expect(() => writer.finish()).toThrowError(FileError);
  closeSync(fd);
});

test.runIf(process.platform === 'linux')('a full disk is reported as such', () => {
  const fd = openSync('/dev/full', 'w');
  try {
    const writer = tar.createWriter(fd, 'a.tar');
    writer.begin('a', [{ name: 'jpg', bytes: 1 }]);
    writer.commit();
    expect(() => writer.finish()).toThrowError(/a\.tar cannot be written: no space left.*free some space/);
  } finally {
    closeSync(fd);
  }
});

test('samples written in pieces have the same bytes, and a sample whose pieces fail leaves nothing', async () => {
  const property = fc.asyncProperty(
    fc.array(
      fc.record({
        sample,
        pieceBytes: fc.integer({ min: 1, max: 40 }),
        how: fc.constantFrom('whole', 'pieces', 'fails'),
      }),
    ),
    async (given) => {
      const kept = given.filter(({ how }) => how !== 'fails').map(({ sample: { key, fields } }) => ({ key, fields }));
      const path = join(folder, 'pieces.tar');
      const fd = openSync(path, 'w');
      const writer = tar.createWriter(fd, path);
      for (const {
        sample: { key, fields },
        pieceBytes,
        how,
      } of given) {
        if (how === 'whole') {
          const places = writer.begin(
            key,
            fields.map(({ name, payload }) => ({ name, bytes: payload.length })),
          );
          for (const [i, place] of places.entries()) place.set(fields[i]!.payload);
          writer.commit();
          continue;
        }
        function* piecesOf(payload: Uint8Array) {
          for (let at = 0; at < payload.length; at += pieceBytes) yield payload.subarray(at, at + pieceBytes);
          if (how === 'fails') throw new Error('no more');
        }
        const sums = writer.writeInPieces!(
          key,
          fields.map(({ name, payload }) => ({ name, bytes: payload.length, pieces: () => piecesOf(payload) })),
        );
        if (how === 'fails') await expect(sums).rejects.toThrow('no more');
        else expect(await sums).toEqual(fields.map(({ payload }) => crc32(payload)));
      }
      const finished = writer.finish();
      closeSync(fd);
      expect(finished).toEqual(write(kept));
      expect(readFileSync(path).equals(readFileSync(join(folder, 'written.tar')))).toBe(true);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('pieces that do not have the announced length throw an error', async () => {
  const fd = openSync(join(folder, 'pieces.tar'), 'w');
  const writer = tar.createWriter(fd, 'a.tar');
  for (const bytes of [2, 4]) {
    const wrong = writer.writeInPieces!('a', [{ name: 'jpg', bytes, pieces: () => [bytesOf('abc')] }]);
    await expect(wrong).rejects.toThrow('do not add up to its');
  }
  closeSync(fd);
});
