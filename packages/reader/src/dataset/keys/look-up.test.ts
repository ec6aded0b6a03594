import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from '@shardtool/base';
import type { ShardIndex } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import type { ShardFile } from '../shards/shard-file.js';
import { ShardFiles } from '../shards/shard-files.js';
import { LookUp } from './look-up.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-look-up-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What was read of which shard's index. */
const read: string[] = [];

/** A shard of samples `<name>0`, `<name>1` ... whose field `txt` is the key behind four bytes of header. */
function shard(name: string, samples: number): ShardFile {
  const path = join(folder, name);
  const keys = Array.from({ length: samples }, (_, row) => `${name}${row}`);
  writeFileSync(path, keys.map((key) => `....${key}`).join(''));
  const span = 4 + name.length + 1;
  const at = (offset: number) => Float64Array.from({ length: samples }, (_, row) => row * span + offset);
  const index: ShardIndex = {
    samples,
    key: keys,
    source: keys,
    offset: at(0),
    bytes: new Float64Array(samples).fill(span),
    fields: new Map([
      ['none', { offset: at(0).fill(-1), bytes: at(0).fill(0), crc32: new Uint32Array(samples) }],
      ['txt', { offset: at(4), bytes: at(0).fill(span - 4), crc32: Uint32Array.from(keys, (key) => crc32(key)) }],
    ]),
    width: new Int32Array(samples),
    height: new Int32Array(samples),
    orientation: new Uint8Array(samples).fill(1),
    cls: Int32Array.from({ length: samples }, (_, row) => row + 5),
    columns: new Map(),
  };
  return {
    ...{ name, path, bytes: samples * span, samples, loadIndex: async () => index, findCropIndex: async () => null },
    loadParts: async (parts) => {
      read.push(`${name}: ${parts.join(' ')}`);
      return index;
    },
  };
}

const files = new ShardFiles([shard('a', 3), shard('empty', 0), shard('b', 2)]);
const lookUp = new LookUp(files);
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

test('every index gives its sample, across shards and empty shards', async () => {
  for (const [number, key] of ['a0', 'a1', 'a2', 'b0', 'b1'].entries()) {
    const { fields, columns: _, ...sample } = await lookUp.sample(number, undefined, true);
    expect(sample).toEqual({ index: number, shard: key[0], key, source: key, label: 5 + Number(key[1]) });
    expect(Object.keys(fields)).toEqual(['txt']);
    expect(text(fields.txt!)).toBe(key);
  }
});

test('an index file is read once, and its keys are not read if the key is known', async () => {
  read.length = 0;
  const another = new LookUp(files);
  for (const row of [1, 0, 2]) await another.sample(row, `a${row}`, true);
  expect(read).toEqual(['a: offset bytes fields cls', 'a: columns source']);
  await another.sample(0, undefined, true);
  expect(read).toEqual(['a: offset bytes fields cls', 'a: columns source', 'a: key']);
});

test('changed bytes throw an error that names the sample, unless checksums are off', async () => {
  writeFileSync(join(folder, 'b'), '....b0....xx');
  await expect(lookUp.sample(4, undefined, true)).rejects.toThrow('b: field "txt" of sample "b1" has changed');
  expect(text((await lookUp.sample(4, undefined, false)).fields.txt!)).toBe('xx');
  await files.close();
  await expect(lookUp.sample(0, undefined, true)).rejects.toThrow('The dataset was closed');
});
