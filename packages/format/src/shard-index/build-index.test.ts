import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, crc32Hex, DamagedShardError, TruncatedShardError } from '@shardtool/base';
import { afterAll, expect, test } from 'vitest';
import type { SamplePosition, WrittenLayout } from '../layouts/layout.js';
import { layoutOf, type WrittenLayoutName } from '../layouts/registry.js';
import { fieldPayload } from '../sample/field-payload.js';
import { mapRules } from '../sample/sample-check.js';
import { openSource } from '../source.js';
import { buildShardIndex } from './build-index.js';
import type { ShardIndex } from './shard-index.js';

const folder = mkdtempSync(join(tmpdir(), 'build-index-'));
afterAll(() => rmSync(folder, { recursive: true }));

const oddImage = (name: string) =>
  readFileSync(new URL(`../../../../test/fixtures/odd-images/${name}`, import.meta.url));
const photo = oddImage('exif-rotated-6.jpg');
const picture = oddImage('alpha.png');

/** One sample of each kind: complete, with text as an image, without class, without image, with two images. */
const SAMPLES: readonly Record<string, string | Buffer>[] = [
  { key: 'a/1', cls: '7', jpg: photo },
  { key: 'a/2', cls: '12\n', jpg: 'no image at all', txt: 'grün' },
  { key: 'b/3', png: picture },
  { key: 'b/4', cls: 'cat', 'seg.png': picture },
  { key: 'b/5', cls: '-3', jpg: photo, png: picture },
];

function write(layout: WrittenLayout): string {
  const path = join(folder, `shard${layout.extension}`);
  const fd = openSync(path, 'w');
  const writer = layout.createWriter(fd, path);
  for (const { key, ...fields } of SAMPLES) {
    const payloads = Object.entries(fields).map(([name, payload]) => ({ name, payload: Buffer.from(payload) }));
    const places = writer.begin(
      key as string,
      payloads.map(({ name, payload }) => ({ name, bytes: payload.length })),
    );
    for (const [i, place] of places.entries()) place.set(payloads[i]!.payload);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  return path;
}

async function build(layout: WrittenLayout, path: string): Promise<ShardIndex> {
  const source = await openSource(path);
  try {
    return await buildShardIndex(layout, source);
  } finally {
    await source.close();
  }
}

/** Length and crc32 of the payloads at the positions of an index. */
function payloads(index: ShardIndex, path: string): Record<string, string>[] {
  const file = readFileSync(path);
  return index.key.map((key, row) => {
    const sample: Record<string, string> = { key };
    for (const [name, { offset, bytes, msgpack }] of index.fields) {
      if (offset[row]! < 0) continue;
      const stored = file.subarray(offset[row]!, offset[row]! + bytes[row]!);
      sample[name] = digest(fieldPayload(stored, msgpack?.[row] === 1));
    }
    return sample;
  });
}

function digest(payload: Uint8Array): string {
  return `${payload.length} bytes, ${crc32Hex(crc32(payload))}`;
}

test.each<WrittenLayoutName>(['tar', 'lmdb', 'msgpack'])(
  'the index of a %s shard describes its payloads',
  async (name) => {
    const layout = await layoutOf(name);
    const path = write(layout);
    const index = await build(layout, path);
    const given = SAMPLES.map(({ key, ...fields }) => ({
      key,
      ...Object.fromEntries(Object.entries(fields).map(([field, payload]) => [field, digest(Buffer.from(payload))])),
    }));
    expect(payloads(index, path)).toEqual(given);
    expect(index).toMatchObject({
      samples: 5,
      source: ['', '', '', '', ''],
      width: Int32Array.of(240, 0, 320, 0, 240),
      height: Int32Array.of(320, 0, 240, 0, 320),
      orientation: Uint8Array.of(6, 1, 1, 1, 6),
      cls: Int32Array.of(7, 12, -1, -1, -1),
      columns: new Map(),
    });
    expect([...index.fields.keys()]).toEqual(['cls', 'jpg', 'png', 'seg.png', 'txt']);
    for (const [field, columns] of index.fields) {
      const sums = SAMPLES.map(({ [field]: payload }) => (payload === undefined ? 0 : crc32(payload)));
      expect([...columns.crc32!]).toEqual(sums);
    }
  },
);

/** A layout whose walk returns these positions, whatever the file contains. */
function walking(...samples: readonly SamplePosition[]): WrittenLayout {
  return {
    name: 'tar',
    extension: '.tar',
    rules: mapRules(511),
    createWriter: () => {
      throw new Error('not written to');
    },
    async *samples() {
      for (const sample of samples) yield [sample];
    },
    async *salvage() {
      yield* samples;
    },
  };
}

test('a payload that is too large for memory is checksummed in pieces, and its header is read', async () => {
  const path = join(folder, 'long.bin');
  const length = 70 * 2 ** 20 + 5;
  writeFileSync(path, picture);
  truncateSync(path, length);
  const field = { name: 'png', offset: 0, bytes: length };
  const index = await build(walking({ key: 'long', offset: 0, bytes: length, fields: [field] }), path);
  let sum = crc32(picture);
  for (let at = picture.length; at < length; at += 2 ** 20)
    sum = crc32(Buffer.alloc(Math.min(2 ** 20, length - at)), sum);
  expect(index.fields.get('png')!.crc32![0]).toBe(sum);
  expect([index.width[0], index.height[0]]).toEqual([320, 240]);
});

test('a shard that was truncated throws an error that names it', async () => {
  const path = join(folder, 'short.bin');
  writeFileSync(path, 'abc');
  const layout = walking({ key: 'k', offset: 0, bytes: 9, fields: [{ name: 'txt', offset: 1, bytes: 8 }] });
  await expect(build(layout, path)).rejects.toThrow(TruncatedShardError);
  await expect(build(layout, path)).rejects.toThrow('short.bin');
});

test('a msgpack value that has no text throws an error that names its sample', async () => {
  const path = join(folder, 'odd.bin');
  writeFileSync(path, Uint8Array.of(0xc1));
  const layout = walking({
    key: 'k',
    offset: 0,
    bytes: 1,
    fields: [{ name: 'cls', offset: 0, bytes: 1, msgpack: true }],
  });
  await expect(build(layout, path)).rejects.toThrow(DamagedShardError);
  await expect(build(layout, path)).rejects.toThrow('field "cls" of sample "k"');
});
