import { DamagedShardError, EntryNameError, ShardtoolError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCodePoint } from '../../../../../test/any-text.js';
import { TIMES } from '../../../../../test/repetitions.js';
import { decodePax, encodePaxRecord } from './pax.js';

const decode = (text: string | Uint8Array) => decodePax(Buffer.from(text as string), 'a.tar', 512);

test('a record of any length and characters is read back unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCodePoint, maxLength: 120 }), fc.nat(), (text, bytes) => {
      const path = text.replaceAll('\0', '_').replace(/\p{Surrogate}/gu, '_');
      const records = Buffer.concat([encodePaxRecord('path', path), encodePaxRecord('size', String(bytes))]);
      expect(decode(records)).toEqual({ path, bytes });
    }),
  );
});

test('the length of a record includes its own digits, even if it needs one more digit for that', () => {
  expect(encodePaxRecord('path', 'x'.repeat(1)).toString()).toBe('9 path=x\n');
  expect(encodePaxRecord('path', 'x'.repeat(90)).toString()).toMatch(/^99 path=x+\n$/);
  expect(encodePaxRecord('path', 'x'.repeat(91)).toString()).toMatch(/^101 path=x+\n$/);
  for (let length = 0; length < 2000; length++) {
    const record = encodePaxRecord('path', 'x'.repeat(length));
    expect(Number(record.toString().split(' ')[0])).toBe(record.length);
  }
});

test('values may contain equals signs and newlines, and other keywords are ignored', () => {
  expect(decode('20 SCHILY.x=a=b\nc=d\n12 path=a=b\n')).toEqual({ path: 'a=b' });
  expect(decode('22 comment=0123456789\n')).toEqual({});
  expect(decode('')).toEqual({});
});

test('the last of two records with the same keyword applies', () => {
  expect(decode('9 path=a\n9 path=b\n')).toEqual({ path: 'b' });
});

test('records of sparse files are detected', () => {
  expect(decode('22 GNU.sparse.major=1\n')).toEqual({ sparse: true });
});

test('malformed records throw errors with the offset of their header', () => {
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

test('a size that is negative or not a number throws an error', () => {
  for (const size of ['-5', '1.5', '1e3', '0x10', ' 7', '9'.repeat(21)]) {
    expect(() => decode(encodePaxRecord('size', size)), size).toThrowError(DamagedShardError);
  }
});

test('a path that contains NUL or is not UTF-8 throws an error that says which', () => {
  expect(() => decode('12 path=a\0b\n')).toThrowError(EntryNameError);
  expect(() => decode('12 path=a\0b\n')).toThrowError('the name in the record at byte 512 contains a NUL');
  expect(() => decode(Buffer.from('9 path=\xe9\n', 'latin1'))).toThrowError(EntryNameError);
  expect(() => decode(Buffer.from('9 path=\xe9\n', 'latin1'))).toThrowError('is not UTF-8');
});

test('lengths and sizes may have any number of leading zeros', () => {
  expect(decode(encodePaxRecord('size', `${'0'.repeat(40)}1234`))).toEqual({ bytes: 1234 });
  expect(decode('0013 size=12\n')).toEqual({ bytes: 12 });
});

test('random bytes give records or a ShardtoolError', () => {
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
