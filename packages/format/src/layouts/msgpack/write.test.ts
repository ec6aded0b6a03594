import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { unpackMultiple } from 'msgpackr';
import { afterAll, expect, test } from 'vitest';
import { openSource } from '../../source.js';
import { msgpack } from './index.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-msgpack-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes samples of a `cls` and a `jpg` each and discards every fourth; returns the result of finish(), and the file. */
function write(name: string, sizes: readonly number[]) {
  const path = join(folder, name);
  const fd = openSync(path, 'wx');
  const writer = msgpack.createWriter(fd, name);
  for (const [i, bytes] of sizes.entries()) {
    const digits = String(i * 50);
    const fields = [
      { name: 'cls', bytes: digits.length },
      { name: 'jpg', bytes },
    ];
    const [cls, image] = writer.begin(`k${i}`, fields);
    cls!.set(Buffer.from(digits));
    image!.fill(i);
    if (i % 4 === 3) writer.discard();
    else writer.commit(i % 4 === 1 ? [] : [crc32(cls!), crc32(image!)]);
  }
  const finished = writer.finish();
  closeSync(fd);
  return { finished, path };
}

async function samplesOf(path: string) {
  const source = await openSource(path);
  const samples = [];
  for await (const batch of msgpack.samples(source)) samples.push(...batch);
  await source.close();
  return samples;
}

test('the positions that finish() returns are those that the reader finds, and discarded samples are absent', async () => {
  const { finished, path } = write('mixed.msgpack', [0, 1, 255, 9, 256, 65_535, 65_536, 9, 200, 40]);
  const bytes = readFileSync(path);
  expect([finished.bytes, finished.crc32]).toEqual([bytes.length, crc32(bytes)]);
  const decoded = unpackMultiple(bytes) as { __key__: string; jpg: Buffer; cls: number }[];
  expect(decoded.map(({ __key__ }) => __key__)).toEqual(['k0', 'k1', 'k2', 'k4', 'k5', 'k6', 'k8', 'k9']);
  expect(decoded.map(({ jpg, cls }) => [jpg.length, cls])).toContainEqual([65_536, 300]);
  const samples = await samplesOf(path);
  expect(samples.map(({ key }) => key)).toEqual(decoded.map(({ __key__ }) => __key__));
  expect(samples.map(({ offset }) => offset)).toEqual([...finished.sampleOffset]);
  expect(samples.map((sample) => sample.bytes)).toEqual([...finished.sampleBytes]);
  const places = samples.flatMap(({ fields }) => ['cls', 'jpg'].map((name) => fields.find((f) => f.name === name)!));
  expect(places.map(({ offset }) => offset)).toEqual([...finished.payloadOffset]);
  expect(places.map((field) => field.bytes)).toEqual([...finished.payloadBytes!]);
  expect(places.map((field) => (field.msgpack ? 1 : 0))).toEqual([...finished.payloadMsgpack!]);
});

test('the same samples give the same bytes, and a sample larger than the buffer is written completely', async () => {
  const sizes = [10, 20 << 20, 5, 17 << 20];
  const first = write('large-1.msgpack', sizes);
  const second = write('large-2.msgpack', sizes);
  expect(first.finished).toEqual(second.finished);
  expect(crc32(readFileSync(first.path))).toBe(first.finished.crc32);
  expect((await samplesOf(first.path)).map(({ key }) => key)).toEqual(['k0', 'k1', 'k2']);
});

test('a shard without samples is an empty file', async () => {
  const { finished, path } = write('empty.msgpack', []);
  expect([finished.bytes, finished.crc32, finished.sampleOffset.length]).toEqual([0, 0, 0]);
  expect(await samplesOf(path)).toEqual([]);
});

test('names that would not read back are rejected', () => {
  const writer = msgpack.createWriter(-1, 's.msgpack');
  const field = { name: 'jpg', bytes: 1 };
  expect(() => writer.begin('', [field])).toThrow('s.msgpack: the key "" is empty');
  expect(() => writer.begin('../x', [field])).toThrow('leads out of its folder');
  expect(() => writer.begin('\ud800', [field])).toThrow('is not text');
  expect(() => writer.begin('k', [])).toThrow('has no fields to write');
  expect(() => writer.begin('k', [{ name: '__key__', bytes: 1 }])).toThrow('is that of the key');
  expect(() => writer.begin('k', [{ name: 'a/b', bytes: 1 }])).toThrow('holds a slash');
  expect(() => writer.begin('k'.repeat(65_536), [field])).toThrow('is 65536 bytes long');
});
