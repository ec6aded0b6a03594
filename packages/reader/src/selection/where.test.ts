import type { ColumnValue, ShardIndex } from '@shardtool/format';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCodePoint } from '../../../../test/any-text.js';
import { TIMES } from '../../../../test/repetitions.js';
import { compileWhere } from './where.js';
import { WhereError } from './where-tokens.js';

const CLASSES = ['cat', 'dog'];
const index: ShardIndex = {
  samples: 4,
  key: ['a', 'b', 'c', "o'd"],
  source: ['x/a.jpg', 'x/b.jpg', 'y/c.jpg', ''],
  offset: new Float64Array(4),
  bytes: Float64Array.of(10, 20, 30, 40),
  fields: new Map(),
  width: Int32Array.of(100, 256, 300, 0),
  height: Int32Array.of(200, 200, 300, 0),
  orientation: Uint8Array.of(1, 6, 1, 1),
  cls: Int32Array.of(0, 1, 1, -1),
  columns: new Map<string, readonly ColumnValue[]>([
    ['score', [0.5, null, -2, 7]],
    ['sharp', [true, false, null, true]],
    ['taken by', ['eve', 'adam', 'eve', null]],
    ['empty', [null, null, null, null]],
  ]),
};

function keysWhere(text: string): string {
  const isWanted = compileWhere(text, CLASSES)(index);
  return index.key.filter((_, row) => isWanted(row)).join('');
}

test.each([
  ['width >= 256 and cls in (1, 7)', 'bc'],
  ['width = 100 or height == 300', 'ac'],
  ['width != 100', "bco'd"],
  ['width > height', 'b'],
  ['200 < width', 'bc'],
  ['bytes <= 20', 'ab'],
  ['not (width < 300 or class = "dog")', ''],
  ['not width < 300', 'c'],
  ['cls not in (0)', "bco'd"],
  ['NOT cls IN (0)', "bco'd"],
  ['class = "dog"', 'bc'],
  ["class in ('cat', 'dog')", 'abc'],
  ['class = null', "o'd"],
  ["key = 'o''d'", "o'd"],
  ['key >= "b" and key < "d"', 'bc'],
  ['score > -2.5e0 and score < 1', 'ac'],
  ['score = null', 'b'],
  ['score != null and score < .6', 'ac'],
  ['sharp', "ao'd"],
  ['not sharp', 'bc'],
  ['sharp = false', 'b'],
  ['sharp in (true, null)', "aco'd"],
  ['`taken by` = "eve"', 'ac'],
  ['empty = 3 or empty = "x" or empty', ''],
  ['orientation = 6 or width = 100 and height = 1', 'b'],
  ['true and not false', "abco'd"],
])('%s selects %s', (text, keys) => {
  expect(keysWhere(text)).toBe(keys);
});

test.each([
  ['', 1, 'expected a column or a value, found the end'],
  ['width >=', 9, 'expected a column or a value, found the end'],
  ['width >= and height', 10, 'found "and"'],
  ['width > 3 height', 11, 'expected "and", "or" or the end, found "height"'],
  ['(width > 3', 11, 'expected ")", found the end'],
  ['cls in 3', 8, 'expected "("'],
  ['cls in ()', 9, 'expected a value, found ")"'],
  ['cls in (width)', 9, 'expected a value, found "width"'],
  ['cls not 3', 9, 'expected "in"'],
  ['key = "a', 7, 'the quote " is not closed'],
  ['width > 3; exit', 10, '";" is not understood'],
  ['process.exit(1)', 13, 'expected "and", "or" or the end, found "("'],
  ['widht > 3', 1, 'there is no column "widht" (did you mean "width"? there are key, source, bytes, width'],
  ['cls = cat', 7, 'there is no column "cat"'],
  ['width = "3"', 9, 'a number is compared with a string ("3")'],
  ['key in ("a", 3)', 14, 'a string is compared with a number (3)'],
  ['3 = key', 1, 'a number is compared with a string (3)'],
  ['sharp < true', 9, 'true can only be compared with = and !='],
  ['score < null', 9, 'null can only be compared with = and !='],
  ['width', 1, 'compare width (number) with something'],
  ['3 or width > 3', 1, 'a condition is missing'],
  ['class = "catt"', 9, 'there is no class "catt"'],
])('%s is rejected at column %i', (text, column, message) => {
  let error: unknown;
  try {
    keysWhere(text);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(WhereError);
  expect((error as WhereError).column).toBe(column);
  expect((error as WhereError).message).toContain(message);
});

test('deeply nested brackets are rejected', () => {
  expect(() => keysWhere('('.repeat(100_000))).toThrow('too many nested brackets');
  expect(() => keysWhere('not '.repeat(100_000))).toThrow('too many nested brackets');
});

test('ten thousand alternatives are accepted', () => {
  expect(keysWhere(Array.from({ length: 10_000 }, (_, i) => `width = ${i}`).join(' or '))).toBe("abco'd");
});

test('any text is an expression or throws a WhereError', () => {
  const words = [
    'width',
    'cls',
    'sharp',
    'and',
    'or',
    'not',
    'in',
    '(',
    ')',
    ',',
    '=',
    '<',
    '3',
    '"a"',
    'null',
    '`',
    '-',
    'é',
  ];
  const texts = fc.oneof(
    fc.string({ unit: anyCodePoint }),
    fc.array(fc.constantFrom(...words)).map((list) => list.join(' ')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        keysWhere(text);
      } catch (error) {
        expect(error).toBeInstanceOf(WhereError);
      }
    }),
    { numRuns: 120 * TIMES },
  );
});
