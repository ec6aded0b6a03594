import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonText, parseJson } from './exact-json.js';

test('integers beyond 2^53 keep their digits, anywhere in a text', () => {
  const text =
    '{"id":9007199254740993,"s":"1, 12345678901234567","list":[-9007199254740993,1,2.5,{"__proto__":18446744073709551615}]}';
  expect(parseJson(text)).toEqual({
    id: 9007199254740993n,
    s: '1, 12345678901234567',
    list: [
      -9007199254740993n,
      1,
      2.5,
      JSON.parse('{"__proto__":0}', (_, value) => (value === 0 ? 2n ** 64n - 1n : value)),
    ],
  });
  expect(jsonText(parseJson(text))).toBe(text);
  expect(parseJson('9007199254740991')).toBe(9007199254740991);
  expect(parseJson('12345678901234567890')).toBe(12345678901234567890n);
  // With a dot or an exponent it is not an integer.
  expect(parseJson('[12345678901234567e3, 0.5000000000000000001]')).toEqual([12345678901234567000n, 0.5].map(Number));
});

test('a value that is nested more deeply than the stack allows throws a SyntaxError', () => {
  const deep = (inside: string) => '['.repeat(100_000) + inside + ']'.repeat(100_000);
  expect(() => parseJson(deep('1'))).not.toThrow();
  expect(() => parseJson(deep('12345678901234567890'))).toThrow(new SyntaxError('it is nested too deep'));
});

test('infinite numbers are written so that they are read back unchanged', () => {
  expect(jsonText([1, Number.POSITIVE_INFINITY, { low: Number.NEGATIVE_INFINITY }])).toBe('[1,1e999,{"low":-1e999}]');
  expect(JSON.parse(jsonText([Number.POSITIVE_INFINITY]))).toEqual([Number.POSITIVE_INFINITY]);
});

test('all other JSON is read and written as by JSON itself', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const value: unknown = JSON.parse(text);
      expect(jsonText(value)).toBe(JSON.stringify(value));
      // A long integer before it makes all of it be read exactly.
      const [, read] = parseJson(`[12345678901234567890, ${text}]`) as unknown[];
      expect(read).toEqual(value);
    }),
  );
});
