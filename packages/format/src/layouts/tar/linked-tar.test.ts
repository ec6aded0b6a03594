import { EntryNameError, UnsupportedEntryError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { archive, entry, header } from '../../../../../test/tar-craft.js';
import type { Source } from '../../source.js';
import { tar } from './index.js';

const { following } = tar;

async function open(bytes: Buffer): Promise<Source> {
  return following!.expand!({
    location: 'a.tar',
    size: bytes.length,
    readAt: async (offset, target) => bytes.copy(target, 0, offset),
    close: async () => {},
  });
}

/** Keys, and the text of each field; then the skipped entries. */
async function samplesOf(bytes: Buffer) {
  const source = await open(bytes);
  const samples: unknown[] = [];
  const skipped: unknown[] = [];
  for await (const found of following!.samples(source, (name, _, kind) => skipped.push([name, kind]))) {
    for (const { key, offset, bytes: length, fields } of found) {
      const texts: string[] = [];
      for (const field of fields) {
        expect(field.offset >= offset && field.offset + field.bytes <= offset + length).toBe(true);
        const text = Buffer.alloc(field.bytes);
        await source.readAt(field.offset, text);
        texts.push(`${field.name}:${text}`);
      }
      samples.push([key, ...texts]);
    }
  }
  return { samples, skipped };
}

const link = (name: string, target: string, type: '1' | '2' = '2') => header({ name, type, linkName: target });

test('links are resolved to files of the archive, before or after them, also through other links', async () => {
  const bytes = archive(
    link('c/first.jpg', '../all/1.jpg'),
    entry({ name: 'c/first.cls' }, '7'),
    entry({ name: './all/1.jpg' }, 'one'),
    entry({ name: 'all/2.jpg' }, ''),
    link('d/second.jpg', './../c/.././c//first.jpg'),
    entry({ name: 'd/second.cls' }, '8'),
    link('hard.jpg', 'all/1.jpg', '1'),
    link('empty.jpg', './all/2.jpg', '1'),
    entry({ name: 'own.jpg' }, 'o'.repeat(100_000)),
  );
  expect(await samplesOf(bytes)).toEqual({
    samples: [
      ['c/first', 'jpg:one', 'cls:7'],
      ['./all/1', 'jpg:one'],
      ['all/2', 'jpg:'],
      ['d/second', 'jpg:one', 'cls:8'],
      ['hard', 'jpg:one'],
      ['empty', 'jpg:'],
      ['own', `jpg:${'o'.repeat(100_000)}`],
    ],
    skipped: [],
  });
});

test('links to outside the archive, to folders or to nothing, and circular links, are skipped and counted', async () => {
  const lost = [
    link('out.jpg', '/etc/passwd'),
    link('up.jpg', '../a.jpg'),
    link('gone.jpg', 'gone'),
    link('folder', 'c'),
    link('self.jpg', 'self.jpg'),
    link('x.jpg', 'y.jpg'),
    link('y.jpg', 'x.jpg'),
    link('none.jpg', ''),
    link('absolute.jpg', '/a.jpg', '1'),
  ];
  const bytes = archive(header({ name: 'c/', type: '5' }), entry({ name: 'a.jpg' }, 'a'), ...lost);
  const { samples, skipped } = await samplesOf(bytes);
  expect(samples).toEqual([['a', 'jpg:a']]);
  expect(skipped).toEqual(
    ['out.jpg', 'up.jpg', 'gone.jpg', 'folder', 'self.jpg', 'x.jpg', 'y.jpg', 'none.jpg', 'absolute.jpg'].map(
      (name) => [name, 'link'],
    ),
  );
});

test('a link whose own name leads out of its folder is rejected like a file with that name; so are devices', async () => {
  const bytes = archive(entry({ name: 'a.jpg' }, 'a'), link('../b.jpg', 'a.jpg', '1'));
  await expect(open(bytes)).rejects.toThrowError(EntryNameError);
  const devices = archive(entry({ name: 'a.jpg' }, 'a'), header({ name: 'fifo', type: '6' }));
  await expect(open(devices)).rejects.toThrowError(UnsupportedEntryError);
});
