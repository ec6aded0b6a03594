import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFully, readFullySync } from './read-fully.js';

test('a read fills its buffer, or ends at the end of the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shardtool-read-fully-'));
  const content = Buffer.from('0123456789');
  writeFileSync(join(folder, 'file'), content);
  await using file = await open(join(folder, 'file'));
  for (const [offset, bytes] of [
    [0, 10],
    [3, 4],
    [5, 20],
    [10, 1],
    [4, 0],
  ] as const) {
    const [one, other] = [Buffer.alloc(bytes), Buffer.alloc(bytes)];
    const expected = content.subarray(offset, offset + bytes);
    expect(one.subarray(0, await readFully(file, one, offset))).toEqual(expected);
    expect(other.subarray(0, readFullySync(file.fd, other, offset))).toEqual(expected);
  }
  rmSync(folder, { recursive: true });
});

test('reads that return fewer bytes than requested are continued', async () => {
  const read = async (target: Uint8Array, at: number, length: number, position: number) => {
    target.fill(position, at, at + Math.min(2, length));
    return { bytesRead: Math.min(2, length) };
  };
  const target = new Uint8Array(5);
  expect(await readFully({ read } as unknown as FileHandle, target, 10)).toBe(5);
  expect([...target]).toEqual([10, 10, 12, 12, 14]);
});
