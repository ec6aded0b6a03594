import { DamagedShardError, EntryNameError, ShardtoolError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCodePoint } from '../../../../../test/any-text.js';
import { TIMES } from '../../../../../test/repetitions.js';
import { decodePax, encodePaxRecord } from './pax.js';

const decode = (text: string | Uint8Array) => decodePax(Buffer.from(text as string), 'a.tar', 512);

test('a record comes back as it was, whatever its length and letters', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCodePoint, maxLength: 120 }), fc.nat(), (text, bytes) => {
      const path = text.replaceAll('\0', '_').replace(/\p{Surrogate}/gu, '_');
      const records = Buffer.concat([encodePaxRecord('path', path), encodePaxRecord('size', String(bytes))]);
      expect(decode(records)).toEqual({ path, bytes });
    }),
  );
});

test('the length of a record counts its own digits, also where one more digit makes one more', () => {
  expect(encodePaxRecord('path', 'x'.repeat(1)).toString()).toBe('9 path=x\n');
  expect(encodePaxRecord('path', 'x'.repeat(90)).toString()).toMatch(/^99 path=x+\n$/);
  expect(encodePaxRecord('path', 'x'.repeat(91)).toString()).toMatch(/^101 path=x+\n$/);
  for (let length = 0; length < 2000; length++) {
    const record = encodePaxRecord('path', 'x'.repeat(length));
    expect(Number(record.toString().split(' ')[0])).toBe(record.length);
  }
});

test('values may hold equals signs and newlines, and other keywords are passed over', () => {
  expect(decode('20 SCHILY.x=a=b\nc=d\n12 path=a=b\n')).toEqual({ path: 'a=b' });
  expect(decode('22 comment=0123456789\n')).toEqual({});
  expect(decode('')).toEqual({});
});

test('of two records with one keyword the last one counts', () => {
  expect(decode('9 path=a\n9 path=b\n')).toEqual({ path: 'b' });
});

test('records of sparse files are noticed', () => {
  expect(decode('22 GNU.sparse.major=1\n')).toEqual({ sparse: true });
});

test('malformed records are errors with the offset of their header', () => {
  const malformed = [
    '8 path=a\n', // too short by one
    '11 path=a\n', // too long by one
    '9 path=ab', // no newline
    '-9 path=a\n',
    '09 path=ab\n',
    '0 path=a\n',
    'x path=a\n',
    ' path=a\n',
    '9path=ab\n',
    '7 path\n',
    '5 =a\n',
    '4 =\n',
    '99999999999999999999 path=a\n',
    '9 path=a\n\0\0\0',
    '9 path=a\n7 pa',
  ];
  for (const text of malformed) {
    expect(() => decode(text), text).toThrowError(DamagedShardError);
    expect(() => decode(text), text).toThrowError('a.tar: the header at byte 512 has a malformed pax record');
  }
});

test('a size that is negative or no number is an error', () => {
  for (const size of ['-5', '1.5', '1e3', '0x10', ' 7', '9'.repeat(21)]) {
    expect(() => decode(encodePaxRecord('size', size)), size).toThrowError(DamagedShardError);
  }
});

test('a path with a NUL or bytes that are not UTF-8 is an error, each with a sentence of its own', () => {
  expect(() => decode('12 path=a\0b\n')).toThrowError(EntryNameError);
  expect(() => decode('12 path=a\0b\n')).toThrowError('the name in the record at byte 512 contains a NUL');
  expect(() => decode(Buffer.from('9 path=\xe9\n', 'latin1'))).toThrowError(EntryNameError);
  expect(() => decode(Buffer.from('9 path=\xe9\n', 'latin1'))).toThrowError('is not UTF-8');
});

test('lengths and sizes may have zeros in front, however many', () => {
  expect(decode(encodePaxRecord('size', `${'0'.repeat(40)}1234`))).toEqual({ bytes: 1234 });
  expect(decode('0013 size=12\n')).toEqual({ bytes: 12 });
});

test('random bytes end in records or an error of ours', () => {
  const nearly = fc
    .string({ unit: fc.constantFrom(...'0123 =\npathsize'), maxLength: 40 })
    .map((text) => Buffer.from(text));
  fc.assert(
    fc.property(fc.oneof(nearly, fc.uint8Array({ maxLength: 64 })), (bytes) => {
      try {
        decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(ShardtoolError);
      }
    }),
    { numRuns: 200 * TIMES },
  );
});
