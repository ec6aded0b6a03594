import { DamagedShardError, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import { afterEach, expect, test, vi } from 'vitest';
import { archive, entry, gnuLong, header } from '../../../../../test/tar-craft.js';
import type { Source } from '../../source.js';
import { scanEntries } from './scan.js';
import { streamFiles } from './stream.js';
import type { TarEntry } from './walk.js';

/** A file in memory that records its reads as [offset, length]. `size` may go beyond `bytes`: the rest is zeros. */
function source(bytes: Buffer, options: { now?: boolean; size?: number } = {}) {
  const size = options.size ?? bytes.length;
  const reads: [number, number][] = [];
  const copy = (offset: number, target: Uint8Array): number => {
    reads.push([offset, target.length]);
    target.fill(0);
    bytes.copy(target, 0, Math.min(offset, bytes.length));
    return Math.min(target.length, size - offset);
  };
  const memory: Source = {
    location: 'a.tar',
    size,
    readAt: async (offset, target) => copy(offset, target),
    close: async () => {},
  };
  return { reads, source: options.now ? { ...memory, readNow: copy } : memory };
}

afterEach(() => {
  vi.restoreAllMocks();
});

/** From here on every jump appears to take `ms`, however busy the machine is. */
function hopsTake(ms: number): void {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += ms;
    return now;
  });
}

async function scan(from: Source): Promise<TarEntry[]> {
  const all: TarEntry[] = [];
  for await (const entries of scanEntries(from)) all.push(...entries);
  return all;
}

async function streamed(bytes: Buffer): Promise<string[]> {
  const names: string[] = [];
  async function* chunks() {
    yield bytes;
  }
  for await (const { name } of streamFiles(chunks(), 'a.tar')) names.push(name);
  return names;
}

const large = archive(
  ...Array.from({ length: 40 }, (_, i) => entry({ name: `${i}.jpg` }, Buffer.alloc(100_000, 1))),
  ...Array.from({ length: 3000 }, (_, i) => entry({ name: `small-${i}.txt` }, 'x')),
  gnuLong(`${'n'.repeat(5000)}.jpg`),
  entry({ magic: 'gnu' }, Buffer.alloc(3_000_000, 2)),
  entry({ name: 'last.jpg' }, Buffer.alloc(3_000_000, 2)),
);

/** The first bytes of files that are compressed as a whole, and the command in the error. */
const COMPRESSED: readonly (readonly [name: string, begin: Buffer, command: string])[] = [
  ['gzip', Buffer.of(0x1f, 0x8b, 8, 0), 'gunzip'],
  ['zstd', Buffer.of(0x28, 0xb5, 0x2f, 0xfd), 'zstd -d'],
  ['xz', Buffer.from('\xfd7zXZ\0', 'latin1'), 'xz -d'],
  ['bzip2', Buffer.from('BZh91AY&SY'), 'bzip2 -d'],
  ['lz4', Buffer.of(4, 0x22, 0x4d, 0x18), 'lz4 -d'],
];

test.each(COMPRESSED)(
  'an archive compressed by %s is recognised as such, however short, from a file and from a stream',
  async (name, begin, command) => {
    for (const bytes of [
      begin,
      Buffer.concat([begin, Buffer.alloc(80, 1)]),
      Buffer.concat([begin, Buffer.alloc(5000, 1)]),
    ]) {
      const errors = await Promise.all([
        scan(source(bytes).source).catch((error) => error),
        streamed(bytes).catch((error) => error),
      ]);
      for (const error of errors) {
        expect(error).toBeInstanceOf(UnsupportedShardError);
        expect(error.message).toContain(`a.tar: it is compressed with ${name}, `);
        expect(error.message).toContain(`"${command}`);
      }
    }
  },
);

test('an archive whose first name looks like the start of a compressed file is read', async () => {
  const bytes = archive(entry({ name: 'BZh91AY&SY.jpg' }, 'x'));
  expect((await scan(source(bytes).source)).map(({ name }) => name)).toEqual(['BZh91AY&SY.jpg']);
});

test('jumping over payloads and large reads find the same files', async () => {
  const byReads = await scan(source(large).source);
  expect(byReads).toHaveLength(3042);
  for (const ms of [0, 1]) {
    hopsTake(ms);
    expect(await scan(source(large, { now: true }).source)).toEqual(byReads);
  }
});

test('payloads that are much larger than a header are jumped over, unless jumps are slow', async () => {
  const bytesRead = async (ms: number) => {
    hopsTake(ms);
    const { reads, source: from } = source(large, { now: true });
    await scan(from);
    return reads.reduce((sum, [, length]) => sum + length, 0);
  };
  expect(await bytesRead(0.01)).toBeLessThan(large.length / 2);
  expect(await bytesRead(1)).toBeGreaterThan(large.length / 2);
});

test('without fast reads the archive is read in large pieces, and payloads beyond a piece are skipped', async () => {
  const { reads, source: from } = source(large);
  await scan(from);
  expect(reads.length).toBeLessThan(12);
  const bytes = reads.reduce((sum, [, length]) => sum + length, 0);
  expect(bytes).toBeLessThan(large.length - 2_000_000);
});

test('files are returned in portions, in the order of the archive', async () => {
  const portions: number[] = [];
  for await (const entries of scanEntries(source(large).source)) portions.push(entries.length);
  expect(portions.length).toBeGreaterThan(1);
  expect((await scan(source(large).source)).map(({ start }) => start)).toEqual(
    (await scan(source(large).source)).map(({ start }) => start).toSorted((a, b) => a - b),
  );
});

test('an archive with a file of terabytes is scanned without reading the file', async () => {
  const head = entry({ name: 'huge.bin', sizeField: Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0, 0) });
  for (const now of [false, true]) {
    const { reads, source: from } = source(head, { now, size: 2 ** 43 + 2048 });
    expect(await scan(from)).toEqual([{ name: 'huge.bin', start: 0, offset: 512, bytes: 2 ** 43 }]);
    expect(reads.length).toBeLessThan(4);
  }
});

test('files before the damage are returned first, then the error is thrown', async () => {
  const bytes = archive(entry({ name: 'a.jpg' }, 'x'), entry({ name: 'b.jpg' }, 'x'), header({ checksumField: '1' }));
  const entries = scanEntries(source(bytes).source);
  expect((await entries.next()).value.map(({ name }: TarEntry) => name)).toEqual(['a.jpg', 'b.jpg']);
  await expect(entries.next()).rejects.toThrowError(DamagedShardError);
  await expect(entries.next()).resolves.toMatchObject({ done: true });
});

test('a file that was truncated after it was opened throws an error, and there is no endless loop', async () => {
  const bytes = archive(entry({ name: 'a.jpg' }, 'x'));
  for (const now of [false, true]) {
    const { source: from } = source(bytes, { now });
    const shrunk = { ...from, size: bytes.length + 4096 };
    await expect(scan(shrunk)).rejects.toThrowError(TruncatedShardError);
  }
});
