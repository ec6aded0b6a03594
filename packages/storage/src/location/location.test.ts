import { expect, test } from 'vitest';
import {
  expandBraces,
  isRemote,
  joinLocation,
  joinLocations,
  localPathOf,
  shownLocation,
  splitLocation,
} from './location.js';

test('a name is inserted before the query of its folder', () => {
  expect(joinLocation('https://host/shards?token=x', '0.tar')).toBe('https://host/shards/0.tar?token=x');
  expect(joinLocation('s3://bucket/a?b/', '0.tar')).toBe('s3://bucket/a?b/0.tar');
  expect(joinLocation('shards', '0.lmdb/data.mdb')).toBe('shards/0.lmdb/data.mdb');
});

test('joining many names gives the same as joining each name', () => {
  const names = ['000000.tar', '000000.lmdb/data.mdb', 'a b%41.tar'];
  const folders = [
    '',
    '.',
    './',
    '..',
    '/',
    'a',
    'a//b/',
    './a/../b',
    '/a/',
    'a?b#',
    'https://host/a?t=1',
    's3://b',
    's3://b/a/',
  ];
  for (const folder of folders) {
    expect(joinLocations(folder, names)).toEqual(names.map((name) => joinLocation(folder, name)));
  }
});

test('a location is split into folder and name, and joined back', () => {
  for (const location of ['https://host/a/b.tar?q=1', 's3://bucket/b.tar', 'a/b.tar', '/b.tar']) {
    const { folder, name } = splitLocation(location);
    expect(name).toBe('b.tar');
    expect(joinLocation(folder, name)).toBe(location);
  }
  expect(splitLocation('s3://bucket')).toEqual({ folder: 's3://bucket', name: '' });
  expect(splitLocation('b.tar')).toEqual({ folder: '.', name: 'b.tar' });
});

test('messages contain neither query nor user', () => {
  expect(shownLocation('https://me:word@host/a.tar?X-Amz-Signature=1#x')).toBe('https://host/a.tar');
  expect(shownLocation('photos?/what#')).toBe('photos?/what#');
});

test('a path and a file: URL are local, and all other schemes are remote', () => {
  expect(localPathOf('file:///a%20b')).toBe('/a b');
  expect(localPathOf('a:b')).toBe('a:b');
  expect(localPathOf('s3://b')).toBeNull();
  expect(isRemote('S3://b')).toBe(true);
});

test('braces expand to numbers with leading zeros, or to the listed texts', () => {
  expect(expandBraces('s3://b/t-{008..011}.tar')).toEqual(['008', '009', '010', '011'].map((n) => `s3://b/t-${n}.tar`));
  expect(expandBraces('{a,b}-{1..2}')).toEqual(['a-1', 'a-2', 'b-1', 'b-2']);
  expect(expandBraces('{x}')).toEqual(['{x}']);
});
