import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LocalThreads } from '@shardtool/storage';
import { afterEach, expect, test, vi } from 'vitest';
import type { ShardFile } from './shard-file.js';
import { ShardReads } from './shard-reads.js';

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-reads-'));
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

test('a dataset that is closed while it finds out that its files are slow starts no thread afterwards', async () => {
  const shard = path.join(folder, '000000.tar');
  writeFileSync(shard, 'bytes');
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 2));
  const start = vi.spyOn(LocalThreads.prototype, 'start').mockImplementation(() => {});
  const reads = new ShardReads([{ name: '000000', path: shard } as ShardFile]);
  const measured = reads.measure();
  const closed = reads.close();
  await expect(measured).rejects.toMatchObject({ name: 'DatasetClosedError' });
  await closed;
  expect(reads.isSlow).toBe(true);
  expect(start).not.toHaveBeenCalled();
  expect(() => reads.readFile!(shard)).toThrow('The dataset was closed while it was in use');
});
