import { expect, test } from 'vitest';
import { fieldValue } from './field-values.js';

const bytes = (text: string) => new TextEncoder().encode(text);

test('class and count are integers, text is a string, JSON is parsed, and everything else stays bytes', () => {
  expect(fieldValue('cls', bytes('7\n'))).toBe(7);
  expect(fieldValue('txt', bytes('a cat'))).toBe('a cat');
  expect(fieldValue('meta.json', bytes('{"a":[1,null]}'))).toEqual({ a: [1, null] });
  expect(fieldValue('bin', new Uint8Array([1, 2]))).toEqual(new Uint8Array([1, 2]));
});

test('integers in JSON that a number does not hold exactly are bigints', () => {
  expect(fieldValue('json', bytes('{"id":1234567890123456789,"n":7}'))).toEqual({ id: 1234567890123456789n, n: 7 });
});

test('bytes are copied, so that they outlive the read buffer', () => {
  const source = new Uint8Array([1, 2]);
  const value = fieldValue('bin', source) as Uint8Array;
  source[0] = 9;
  expect(value[0]).toBe(1);
});

test('a class that is not an integer throws an error that shows it', () => {
  expect(() => fieldValue('cls', bytes('cat'))).toThrow('field "cls" is "cat", not an integer');
  expect(() => fieldValue('cls', bytes(''))).toThrow('not an integer');
});
