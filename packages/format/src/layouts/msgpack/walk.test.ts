import { DamagedShardError, ShardtoolError } from '@shardtool/base';
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { fieldPayload } from '../../sample/field-payload.js';
import type { SamplePosition } from '../layout.js';
import { SampleWalk } from './walk.js';

const image = Buffer.alloc(300, 7);
const maps = [
  { __key__: 'a/1', jpg: image, cls: 3 },
  { jpg: Buffer.alloc(70_000, 1), __key__: 'later', txt: 'é'.repeat(200) },
  { __key__: 'labels', boxes: [[1, 2.5], [], { deep: [null, true] }], score: -0.5, empty: {}, none: null },
  { __key__: 'bare' },
];
const shard = Buffer.concat(maps.map((map) => pack(map)));

/** Walks `bytes` through windows of the lengths that `next` gives. */
function walk(bytes: Buffer, next: (needed: number) => number = () => bytes.length, key?: string): SamplePosition[] {
  const samples: SamplePosition[] = [];
  const range = { shard: 'x.msgpack', start: 0, end: bytes.length };
  const walk = new SampleWalk(key === undefined ? range : { ...range, key });
  while (!walk.done) {
    const length = Math.max(walk.needed, next(walk.needed));
    walk.advance(bytes.subarray(walk.position, walk.position + length), samples);
  }
  return samples;
}

function failure(bytes: Buffer, key?: string): ShardtoolError {
  try {
    walk(bytes, undefined, key);
  } catch (error) {
    expect(error).toBeInstanceOf(ShardtoolError);
    return error as ShardtoolError;
  }
  throw new Error('nothing was wrong');
}

test('positions are those of the payloads, at any position of the key in the map', () => {
  const samples = walk(shard);
  expect(samples.map(({ key }) => key)).toEqual(['a/1', 'later', 'labels', 'bare']);
  expect(samples.map(({ offset, bytes }) => offset + bytes)).toEqual([
    ...samples.slice(1).map((s) => s.offset),
    shard.length,
  ]);
  const payloads = samples.map(({ fields }) =>
    fields.map(({ name, offset, bytes, msgpack }) => [
      name,
      Buffer.from(fieldPayload(shard.subarray(offset, offset + bytes), msgpack)).toString('latin1'),
    ]),
  );
  expect(payloads).toEqual([
    [
      ['jpg', image.toString('latin1')],
      ['cls', '3'],
    ],
    [
      ['jpg', '\x01'.repeat(70_000)],
      ['txt', Buffer.from('é'.repeat(200)).toString('latin1')],
    ],
    [
      ['boxes', '[[1,2.5],[],{"deep":[null,true]}]'],
      ['score', '-0.5'],
      ['empty', '{}'],
      ['none', 'null'],
    ],
    [],
  ]);
});

test('the result does not depend on the sizes of the windows in which a shard is read', () => {
  const whole = walk(shard);
  fc.assert(
    fc.property(fc.array(fc.nat(400), { minLength: 1 }), (lengths) => {
      let turn = 0;
      expect(walk(shard, () => lengths[turn++ % lengths.length]!)).toEqual(whole);
    }),
  );
});

test('a truncated shard throws an error with shard and offset, unless it is cut between samples', () => {
  const ends = new Set(walk(shard).map(({ offset }) => offset));
  for (let cut = 0; cut < shard.length; cut += cut < 500 || cut > shard.length - 700 ? 1 : 997) {
    if (ends.has(cut)) {
      expect(walk(shard.subarray(0, cut)).length).toBeLessThan(maps.length);
      continue;
    }
    const error = failure(shard.subarray(0, cut));
    expect(error).toBeInstanceOf(DamagedShardError);
    expect(error.shard).toBe('x.msgpack');
    expect(error.offset).toBeLessThanOrEqual(cut);
    expect(error.message).toContain('truncated');
  }
});

test('a value whose key is stored elsewhere must be exactly one map', () => {
  const value = pack({ jpg: image });
  expect(walk(value, undefined, 'k')).toEqual([
    { key: 'k', offset: 0, bytes: value.length, fields: [{ name: 'jpg', offset: 10, bytes: 300 }] },
  ]);
  expect(failure(Buffer.concat([value, value]), 'k').message).toContain('continues after its map');
  expect(failure(value.subarray(0, 100), 'k').message).toContain('leads beyond its 100 bytes');
  expect(failure(Buffer.alloc(0), 'k').message).toContain('is empty');
  expect(failure(image, 'k').key).toBe('k');
});

test('the error for an invalid sample says what is wrong', () => {
  const extension = Buffer.from([0x81, 0xa1, 0x78, 0xd4, 1, 2]);
  const cases: [Buffer, string][] = [
    [pack([1, 2]), 'the sample at byte 0 is not a map (array)'],
    [pack({ jpg: image }), 'has no "__key__"'],
    [pack({ __key__: 7 }), 'has a key that is not a string (integer)'],
    [pack(new Map([[1, 2]])), 'has a name that is not a string (integer)'],
    [extension, 'there is an extension type at byte 3'],
    [Buffer.from([0xc1]), 'which msgpack never uses'],
    [pack({ __key__: '../x' }), 'leads out of its folder'],
    [pack({ __key__: '/etc/x' }), 'is absolute'],
    [pack({ __key__: '' }), 'is empty'],
    [pack({ __key__: 'k', 'a/b': 1 }), 'holds a slash'],
    [Buffer.from([0x81, 0xa1, 0xff, 1]), 'is not UTF-8'],
    [Buffer.concat([maps[0]!, maps[3]!, maps[0]!].map((map) => pack(map))), 'already occurred at byte 0'],
    [Buffer.from([0x82, 0xa1, 0x78, 1, 0xa1, 0x78, 2]), 'has the field "x" twice, at bytes 3 and 6'],
    [Buffer.from([0xdf, 0xff, 0xff, 0xff, 0xff]), 'is a map of 4294967295 entries'],
    [Buffer.from([0x81, 0xdb, 0xff, 0xff, 0xff, 0xff]), 'has a name of 4294967295 bytes'],
  ];
  for (const [bytes, message] of cases) expect(failure(bytes).message).toContain(message);
});
