import { expect, test } from 'vitest';
import type { FieldColumns, ShardIndex } from '../shard-index/shard-index.js';
import { daliIndex } from './dali.js';
import { checkWidsNames, widsIndex } from './wids.js';

function columns(...places: [offset: number, bytes: number][]): FieldColumns {
  return {
    offset: Float64Array.from(places, ([offset]) => offset),
    bytes: Float64Array.from(places, ([, bytes]) => bytes),
    crc32: new Uint32Array(places.length),
  };
}

function indexOf(key: readonly string[], fields: Record<string, FieldColumns>): ShardIndex {
  const none = new Int32Array(key.length);
  return {
    samples: key.length,
    key,
    source: key.map(() => ''),
    offset: new Float64Array(key.length),
    bytes: new Float64Array(key.length),
    fields: new Map(Object.entries(fields)),
    width: none,
    height: none,
    orientation: new Uint8Array(key.length),
    cls: none,
    columns: new Map(),
  };
}

test("DALI's index has one line per sample, its files in the order of the tar, and omits missing fields", () => {
  const index = indexOf(['cats/1', 'cats/2'], {
    jpg: columns([1536, 700], [3584, 512]),
    'seg.png': columns([-1, 0], [4608, 9]),
    cls: columns([512, 1], [2560, 2]),
  });
  expect(daliIndex(index, '000000.tar')).toBe(
    'v1.2 2\n' +
      'cls 512 1 cats/1.cls jpg 1536 700 cats/1.jpg\n' +
      'cls 2560 2 cats/2.cls jpg 3584 512 cats/2.jpg seg.png 4608 9 cats/2.seg.png\n',
  );
});

test("data that DALI's index cannot express throws an error that names it", () => {
  const place = { jpg: columns([512, 1]) };
  for (const key of ['a b', 'a\tb', 'a\nb']) {
    expect(() => daliIndex(indexOf([key], place), 's.tar')).toThrow(
      `s.tar: the name ${JSON.stringify(`${key}.jpg`)} contains white space`,
    );
  }
  expect(() => daliIndex(indexOf([], {}), 's.tar')).toThrow('not read shards without samples');
  expect(() => daliIndex(indexOf(['a'], { jpg: columns([100, 1]) }), 's.msgpack')).toThrow('s.msgpack is not a tar');
});

test("wids' index names each shard with its md5, samples and size", () => {
  const shards = [
    { file: 'train-000000.tar', samples: 100, bytes: 24_729_600, md5: '8b661e95d30727b7bebdfdebdd5c5b5a' },
    { file: 'train-000001.tar', samples: 0, bytes: 1024, md5: '0f343b0931126a20f133d67c2b018a3b' },
  ];
  expect(JSON.parse(widsIndex(shards))).toEqual({
    __kind__: 'wids-shard-index-v1',
    wids_version: 1,
    shardlist: [
      { url: 'train-000000.tar', md5sum: '8b661e95d30727b7bebdfdebdd5c5b5a', nsamples: 100, filesize: 24_729_600 },
    ],
  });
  expect(() => widsIndex([{ ...shards[0]!, file: '000000.lmdb/data.mdb' }])).toThrow(
    '000000.lmdb/data.mdb is not a tar',
  );
  expect(() => widsIndex(shards.slice(1))).toThrow('not read datasets without samples');
});

test('names that wids would misread throw an error that names them', () => {
  const place = (at: number) => ({ jpg: columns([at, 700]), cls: columns([at + 1536, 1]) });
  const check =
    (key: string, at = 512) =>
    () =>
      checkWidsNames(indexOf([key], place(at)), 's.tar');
  expect(check('a'.repeat(96))).not.toThrow();
  expect(check('a'.repeat(97))).toThrow(/^s\.tar: the name "a{97}\.jpg" is longer than 100 bytes, so wids would/);
  // Such a name may be in the header itself, or in a record before it.
  expect(check('größe')).not.toThrow();
  expect(check('größe', 1536)).toThrow('the name "größe.jpg" has characters that are not ASCII');
  expect(check(`a${'/b'.repeat(3000)}`)).toThrow(/^.{0,400}$/);
});
