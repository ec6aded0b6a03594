import { DuplicateKeyError } from '@shardtool/base';
import { expect, test } from 'vitest';
import type { SamplePosition } from '../layout.js';
import { SampleGrouper } from './group.js';
import type { TarEntry } from './walk.js';

/** Consecutive files of 100 bytes. */
function files(...names: string[]): TarEntry[] {
  return names.map((name, i) => ({ name, start: i * 1024, offset: i * 1024 + 512, bytes: 100 }));
}

function group(entries: TarEntry[], cut = entries.length): { samples: SamplePosition[]; skipped: unknown[] } {
  const skipped: unknown[] = [];
  const samples: SamplePosition[] = [];
  const grouper = new SampleGrouper('a.tar', (name, offset) => skipped.push([name, offset]));
  grouper.push(entries.slice(0, cut), samples);
  grouper.push(entries.slice(cut), samples);
  grouper.finish(samples);
  return { samples, skipped };
}

function failure(...names: string[]): unknown {
  try {
    group(files(...names));
  } catch (error) {
    return error;
  }
  return null;
}

test('consecutive files with the same key are one sample, from its first header to its last byte', () => {
  const { samples } = group(files('d/a.jpg', 'd/a.CLS', 'd/b.seg.png'));
  expect(samples).toEqual([
    {
      key: 'd/a',
      offset: 0,
      bytes: 1636,
      fields: [
        { name: 'jpg', offset: 512, bytes: 100 },
        { name: 'cls', offset: 1536, bytes: 100 },
      ],
    },
    { key: 'd/b', offset: 2048, bytes: 612, fields: [{ name: 'seg.png', offset: 2560, bytes: 100 }] },
  ]);
});

test('the samples do not depend on how the files are split into portions', () => {
  const entries = files('a.jpg', 'a.cls', 'b.jpg', 'b.cls', 'c.jpg');
  for (let cut = 0; cut <= entries.length; cut++) expect(group(entries, cut)).toEqual(group(entries));
});

test('dotfiles and names without a dot are skipped and reported, and do not split a sample', () => {
  const { samples, skipped } = group(files('a.jpg', 'README', '.hidden', 'a.cls'));
  expect(samples.map(({ key, fields }) => [key, fields.length])).toEqual([['a', 2]]);
  expect(skipped).toEqual([
    ['README', 1024],
    ['.hidden', 2048],
  ]);
});

test('a key that occurs again later throws an error with both offsets', () => {
  const error = failure('a.jpg', 'b.jpg', 'a.cls');
  expect(error).toBeInstanceOf(DuplicateKeyError);
  expect(error).toMatchObject({ shard: 'a.tar', key: 'a', path: 'a.cls', offset: 2048, otherOffset: 0 });
  expect((error as Error).message).toContain('at byte 2048 already occurred at byte 0');
  expect((error as Error).message).toMatch(/tar --sort=name.*unpack it/);
});

test('a repeated field of a sample, also in another case, throws an error with both offsets', () => {
  const error = failure('x.jpg', 'a.jpg', 'a.JPG');
  expect(error).toBeInstanceOf(DuplicateKeyError);
  expect(error).toMatchObject({ key: 'a', offset: 2048, otherOffset: 1024 });
  expect((error as Error).message).toContain('field "jpg" twice, at bytes 1024 and 2048');
});
