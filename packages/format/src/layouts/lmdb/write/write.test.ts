import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { unpack } from 'msgpackr';
import { afterAll, expect, test } from 'vitest';
import { openSource } from '../../../source.js';
import type { SamplePosition, WrittenLayout } from '../../layout.js';
import { LmdbDatabase, lmdb, lmdbImages } from '../index.js';
import { branchStarts } from './tree.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-lmdb-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

/** Below 0x80 no msgpack map begins, for which a value of the layout of images could be mistaken. */
const filling = (sample: number) => sample % 0x80;

/** Writes one `jpg` per sample, filled with {@link filling}, and returns the result of finish(). */
function write(layout: WrittenLayout, samples: readonly (readonly [key: string, bytes: number])[]) {
  const place = join(folder, `${files++}${layout.extension}`);
  mkdirSync(place);
  const path = join(place, layout.innerFile!);
  const fd = openSync(path, 'wx');
  const writer = layout.createWriter(fd, path);
  for (const [i, [key, bytes]] of samples.entries()) {
    const payload = writer.begin(key, [{ name: 'jpg', bytes }])[0]!.fill(filling(i));
    writer.commit(i % 3 === 0 ? [] : [crc32(payload)]);
  }
  const finished = writer.finish();
  closeSync(fd);
  return { path, finished };
}

async function positions(path: string, layout = lmdb): Promise<SamplePosition[]> {
  const source = await openSource(path);
  try {
    const samples: SamplePosition[] = [];
    for await (const batch of layout.samples(source)) samples.push(...batch);
    return samples;
  } finally {
    await source.close();
  }
}

/** Around the length up to which a value is stored in its leaf, and of whole pages. */
const edges = [0, 1, 2000, 2020, 2025, 2026, 2027, 2030, 4079, 4080, 4081, 8175, 8176, 8177, 60_000];

test('random keys and sizes read back by scan, by key and by position', async () => {
  const key = fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }), fc.nat(5000).map(String));
  const bytes = fc.oneof(fc.nat(300), fc.constantFrom(...edges));
  const run = fc.uniqueArray(fc.tuple(key, bytes), { selector: ([name]) => name, maxLength: 400, size: 'max' });
  const safe = run.map((samples) => samples.filter(([name]) => !/^\/|\0|(^|\/)\.\.(\/|$)/.test(name)));
  await fc.assert(
    fc.asyncProperty(safe, fc.boolean(), async (samples, asMaps) => {
      const layout = asMaps ? lmdb : lmdbImages;
      const { path, finished } = write(layout, samples);
      const file = readFileSync(path);
      expect([finished.bytes, finished.crc32]).toEqual([file.length, crc32(file)]);
      const found = new Map((await positions(path)).map((sample) => [sample.key, sample]));
      expect(found.size).toBe(samples.length);
      const source = await openSource(path);
      const database = await LmdbDatabase.open(source);
      for (const [i, [name, length]] of samples.entries()) {
        const payload = Buffer.alloc(length, filling(i));
        const value = (await database.get(name))!;
        expect(payload.equals(asMaps ? (unpack(value) as { jpg: Buffer }).jpg : value)).toBe(true);
        const sample = found.get(name)!;
        expect([sample.offset, sample.bytes]).toEqual([finished.sampleOffset[i], finished.sampleBytes[i]]);
        expect(sample.fields[0]).toMatchObject({ offset: finished.payloadOffset[i], bytes: length });
        expect(payload.equals(file.subarray(finished.payloadOffset[i]!, finished.payloadOffset[i]! + length))).toBe(
          true,
        );
      }
      expect(await database.get('not there')).toBeUndefined();
      await source.close();
      rmSync(path);
    }),
    // A failure is shown as it was found: shrinking a case of hundreds of samples takes minutes.
    { numRuns: 15, endOnFailure: true },
  );
});

test('a scan returns keys in the order of their UTF-8 bytes, not of their UTF-16', async () => {
  const keys = ['\u{1f600}', '\uff5e', 'z', 'Z', 'é', 'a/b', 'a'];
  const { path } = write(
    lmdb,
    keys.map((key) => [key, 5]),
  );
  const sorted = keys.map((key) => Buffer.from(key)).sort(Buffer.compare);
  expect((await positions(path)).map(({ key }) => key)).toEqual(sorted.map(String));
});

test('the same samples give the same bytes', () => {
  const samples = edges.map((bytes, i) => [`k${(i * 7) % 13}-${i}`, bytes] as const);
  const [first, second] = [write(lmdb, samples), write(lmdb, samples)];
  expect(first.finished).toEqual(second.finished);
  expect(readFileSync(first.path).equals(readFileSync(second.path))).toBe(true);
});

test('a repeated key is rejected before its value is written', async () => {
  const fd = openSync(join(folder, 'twice.mdb'), 'wx');
  const writer = lmdb.createWriter(fd, 's.lmdb');
  const field = { name: 'jpg', bytes: 5 };
  writer.begin('a', [field]);
  writer.discard();
  writer.begin('a', [field]);
  writer.commit();
  expect(() => writer.begin('a', [field])).toThrow('s.lmdb: the key "a" occurs twice');
  writer.begin('b', [field]);
  writer.commit();
  expect(writer.finish().sampleOffset.length).toBe(2);
  closeSync(fd);
});

test('a key of 511 bytes is accepted, and the error for a longer key names it', async () => {
  const longest = `${'é'.repeat(255)}x`;
  const { path } = write(lmdbImages, [
    [longest, 3000],
    ['short', 10],
  ]);
  expect((await positions(path)).map(({ key }) => key)).toEqual(['short', longest]);
  const writer = lmdb.createWriter(-1, 's.lmdb');
  const tooLong = `${'é'.repeat(255)}xy`;
  expect(() => writer.begin(tooLong, [{ name: 'jpg', bytes: 1 }])).toThrow(`the key "${tooLong}" is 512 bytes long`);
});

test('typed fields are integers and text in the map, and are marked as such in their positions', async () => {
  const path = join(folder, 'typed.mdb');
  const fd = openSync(path, 'wx');
  const writer = lmdb.createWriter(fd, path);
  for (const [i, imageBytes] of [100, 50_000].entries()) {
    const views = writer.begin(`k${i}`, [
      { name: 'cls', bytes: 3 },
      { name: 'jpg', bytes: imageBytes },
      { name: 'txt', bytes: 3 },
    ]);
    views[0]!.set(Buffer.from('281'));
    views[1]!.fill(9);
    views[2]!.set(Buffer.from('cat'));
    writer.commit();
  }
  const finished = writer.finish();
  closeSync(fd);
  expect([...finished.payloadMsgpack!]).toEqual([1, 0, 0, 1, 0, 0]);
  expect([...finished.payloadBytes!]).toEqual([3, 100, 3, 3, 50_000, 3]);
  const file = readFileSync(path);
  for (const { offset, bytes } of await positions(path)) {
    expect(unpack(file.subarray(offset, offset + bytes))).toMatchObject({ cls: 281, txt: 'cat' });
  }
});

test('the field of an image without a map is named by the kind of the image', async () => {
  const beginnings: Record<string, string> = {
    jpg: '\xff\xd8\xff\xe0',
    png: '\x89PNG\r\n\x1a\n',
    webp: 'RIFF\x10\0\0\0WEBP',
    gif: 'GIF89a',
    tif: 'II*\0',
    avif: '\0\0\0\x1cftypavif',
    bin: 'something else',
  };
  const path = join(folder, 'kinds.mdb');
  const fd = openSync(path, 'wx');
  const writer = lmdbImages.createWriter(fd, path);
  for (const [key, beginning] of Object.entries(beginnings)) {
    writer.begin(key, [{ name: 'jpg', bytes: 3000 }])[0]!.set(Buffer.from(beginning, 'latin1'));
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  const samples = await positions(path, lmdbImages);
  expect(samples.map(({ key, fields }) => [key, fields[0]!.name])).toEqual(
    Object.keys(beginnings)
      .sort()
      .map((name) => [name, name]),
  );
});

test('no branch page has only one child', () => {
  // Separators of 511 bytes: 8 children per page. Without this rule: 254 in the first page, as many as fit after it.
  for (const bytes of [1, 20, 511]) {
    for (let children = 2; children < 700; children++) {
      const starts = branchStarts(children, () => bytes);
      const counts = starts.map((start, i) => (starts[i + 1] ?? children) - start);
      expect(Math.min(...counts)).toBeGreaterThanOrEqual(2);
      expect(counts.reduce((sum, count) => sum + count)).toBe(children);
    }
  }
});

test('an unfinished file is not a valid database', async () => {
  const path = join(folder, 'unfinished.mdb');
  const fd = openSync(path, 'wx');
  const writer = lmdb.createWriter(fd, path);
  for (let i = 0; i < 40; i++) {
    writer.begin(`k${i}`, [{ name: 'jpg', bytes: 1 << 20 }]);
    writer.commit();
  }
  closeSync(fd);
  await expect(positions(path)).rejects.toThrow('is not an LMDB database');
});
