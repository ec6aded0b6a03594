import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { LocalThreads } from '@shardtool/storage';
import { expect, test, vi } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { buildSlowfs, mountSlow } from './slowfs/slow-folder.mjs';

const OPTIONS = { transform: 'raw', batchSize: 16, seed: 7, workers: 1, streams: 8, blockSamples: 8 } as const;

/** The content of a file of /proc, or '' if it has just disappeared. */
function readOrEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

/** Whether a thread of this process is waiting for a disk. */
function isAThreadInACall(): boolean {
  const states = fs
    .readdirSync('/proc/self/task')
    .map((id) => readOrEmpty(() => fs.readFileSync(`/proc/self/task/${id}/stat`, 'latin1')));
  return states.some((stat) => stat.slice(stat.lastIndexOf(')')).startsWith(') D'));
}

async function epoch(location: string, options: object): Promise<string[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...OPTIONS, ...options });
  const digests: string[] = [];
  for await (const { encoded, keys } of loader) {
    const hash = createHash('sha256').update(keys.join());
    for (const image of encoded!) hash.update(image);
    digests.push(hash.digest('hex'));
  }
  return digests;
}

test('a slow file system gives the same batches as a fast one, for any unit of the order', async ({ skip }) => {
  const slowfs = buildSlowfs(emptyFolder());
  if (slowfs === null) return skip();
  const shards = await packedSmall({ samples: 256, bytes: () => 10_000 }, { maxShardSamples: 16 });
  const slow = await mountSlow(slowfs, shards, 2000, 2000);
  if (slow === null) return skip();
  try {
    for (const shuffleUnit of ['shard', 'chunk', 'sample']) {
      const expected = await epoch(shards, { shuffleUnit });
      expect(await epoch(slow.path, { shuffleUnit })).toEqual(expected);
    }
    const cache = path.join(emptyFolder(), 'cache');
    const options = { shuffleUnit: 'shard', cache, cacheSize: '10MB' };
    expect(await epoch(slow.path, options)).toEqual(await epoch(shards, options));
  } finally {
    await slow.unmount();
  }
});

test('threads read parts of files and whole files, and errors keep their class', async () => {
  const folder = emptyFolder();
  const files = Array.from({ length: 40 }, (_, i) => path.join(folder, String(i)));
  for (const [i, file] of files.entries()) fs.writeFileSync(file, Buffer.alloc(1000, i));
  const threads = new LocalThreads({ most: 4, each: 3, growMs: 1 });
  threads.start();
  const parts = await Promise.all(
    files.map(async (file) => {
      const target = new Uint8Array(new SharedArrayBuffer(10));
      const { got } = await threads.read(file, 995, target);
      return [...target.subarray(0, got)];
    }),
  );
  expect(parts).toEqual(files.map((_, i) => Array(5).fill(i)));
  const whole = await Promise.all(files.map((file) => threads.readFile(file)));
  expect(whole.map((bytes) => Buffer.from(bytes))).toEqual(files.map((_, i) => Buffer.alloc(1000, i)));
  await expect(threads.readFile(path.join(folder, 'none'))).rejects.toMatchObject({
    name: 'FileNotFoundError',
    path: path.join(folder, 'none'),
  });
  const target = new Uint8Array(new SharedArrayBuffer(10));
  await expect(threads.read(path.join(folder, 'none'), 0, target)).rejects.toMatchObject({
    name: 'FileNotFoundError',
  });
  await threads.close();
});

test.runIf(process.platform === 'linux')(
  'all threads read through the same open files, and close all of them',
  async () => {
    const folder = emptyFolder();
    const files = Array.from({ length: 600 }, (_, i) => path.join(folder, String(i)));
    for (const [i, file] of files.entries()) fs.writeFileSync(file, String(i));
    const open = (): string[] => {
      const links = fs
        .readdirSync('/proc/self/fd')
        .map((fd) => readOrEmpty(() => fs.readlinkSync(`/proc/self/fd/${fd}`)));
      return links.filter((file) => file.startsWith(folder)).sort();
    };
    const threads = new LocalThreads({ most: 4, each: 1 });
    const read = async (file: string): Promise<string> => {
      const target = new Uint8Array(new SharedArrayBuffer(10));
      const { got } = await threads.read(file, 0, target);
      return Buffer.from(target.slice(0, got)).toString();
    };
    for (const file of [files[0]!, files[0]!, files[1]!]) await read(file);
    expect(open()).toEqual(files.slice(0, 2));
    // More than stay open, so file descriptors are reused.
    for (let round = 0; round < 2; round++) {
      expect(await Promise.all(files.map(read))).toEqual(files.map((_, i) => String(i)));
    }
    const late = Promise.allSettled(files.map(read));
    await threads.close();
    await late;
    expect(open()).toEqual([]);
  },
);

test.runIf(process.platform === 'linux')('reads take precedence over indexes that were requested earlier', async () => {
  const folder = emptyFolder();
  const [held, ...files] = ['held', 'a', 'b', 'c'].map((name) => path.join(folder, name));
  for (const file of files) fs.writeFileSync(file, file);
  // Opening it waits until another process opens it for writing.
  execFileSync('mkfifo', [held!]);
  const threads = new LocalThreads({ most: 1, each: 1 });
  const done: string[] = [];
  const waits = threads.readFile(held!).catch(() => {});
  const wholes = files
    .slice(1)
    .map((file) => threads.readFile(file).then(() => done.push(`all of ${path.basename(file)}`)));
  const read = threads.read(files[0]!, 0, new Uint8Array(new SharedArrayBuffer(1))).then(() => done.push('a'));
  await (await fs.promises.open(held!, 'w')).close();
  await Promise.all([waits, read, ...wholes]);
  await threads.close();
  // Each of the two ends when its file is closed, in either order.
  expect(done[0]).toBe('a');
  expect(done.slice(1).sort()).toEqual(['all of b', 'all of c']);
});

test.runIf(process.platform === 'linux')('datasets share the limit of open files', async () => {
  const folder = emptyFolder();
  const files = Array.from({ length: 400 }, (_, i) => path.join(folder, String(i)));
  for (const file of files) fs.writeFileSync(file, file);
  const open = (): number => {
    const links = fs
      .readdirSync('/proc/self/fd')
      .map((fd) => readOrEmpty(() => fs.readlinkSync(`/proc/self/fd/${fd}`)));
    return links.filter((file) => file.startsWith(folder)).length;
  };
  const [one, other] = [1, 2].map(() => new LocalThreads({ most: 4, each: 1 }));
  const read = (threads: LocalThreads, file: string) => threads.read(file, 0, new Uint8Array(new SharedArrayBuffer(1)));
  for (const threads of [one!, other!]) await Promise.all(files.map((file) => read(threads, file)));
  await vi.waitUntil(() => open() <= 512, { timeout: 60_000 });
  await one!.close();
  await Promise.all(files.map((file) => read(other!, file)));
  expect(open()).toBe(400);
  await other!.close();
  expect(open()).toBe(0);
});

test('a read of a slow file requests all of its bytes at once', async ({ skip }) => {
  const slowfs = buildSlowfs(emptyFolder());
  if (slowfs === null) return skip();
  const folder = emptyFolder();
  const content = Buffer.from(Array.from({ length: 1 << 20 }, (_, i) => (i * 7) >> 8));
  fs.writeFileSync(path.join(folder, 'file'), content);
  const slow = await mountSlow(slowfs, folder, 0, 500_000);
  if (slow === null) return skip();
  const threads = new LocalThreads({ most: 1, each: 1 });
  try {
    const file = path.join(slow.path, 'file');
    await threads.read(file, content.length - 1, new Uint8Array(new SharedArrayBuffer(1)));
    const target = new Uint8Array(new SharedArrayBuffer(content.length));
    slow.stop();
    const reading = threads.read(file, 0, target);
    await vi.waitUntil(isAThreadInACall, { timeout: 60_000 });
    slow.goOn();
    expect((await reading).got).toBe(content.length);
    expect(content.equals(target)).toBe(true);
  } finally {
    slow.goOn();
    await threads.close();
  }
  // By default the kernel reads 128 KiB, and 128 more when these are accessed.
  expect((await slow.unmount()).readsAtOnce).toBeGreaterThan(4);
});
