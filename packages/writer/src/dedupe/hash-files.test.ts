import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from '@shardtool/base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DIGEST_BYTES, hashParts } from './hash-files.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hash-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('parts of a file are hashed separately, and a part beyond the end of the file has zeros', () => {
  const bytes = Buffer.from('0123456789');
  const path = join(folder, 'shard');
  writeFileSync(path, bytes);
  const job = { path, first: 7, offset: Float64Array.of(0, 6, 8), bytes: Float64Array.of(4, 4, 4) };
  const reported: [number, number][] = [];
  const hashed = hashParts(job, (files, length) => reported.push([files, length]));
  const parts = [bytes.subarray(0, 4), bytes.subarray(6, 10)];
  const digests = parts.map((part) => createHash('sha256').update(part).digest());
  expect(Buffer.from(hashed.digests)).toEqual(Buffer.concat([...digests, Buffer.alloc(DIGEST_BYTES)]));
  expect([...hashed.crc32]).toEqual([...parts.map((part) => crc32(part)), 0]);
  expect([...hashed.numbers]).toEqual([7, 8, 9]);
  expect(reported).toEqual([[3, 12]]);
});
