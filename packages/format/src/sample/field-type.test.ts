import { expect, test } from 'vitest';
import { fieldType } from './field-type.js';

test('the last extension of a field determines its type', () => {
  expect(['cls', 'id', 'txt', 'json', 'jpg', 'seg.png'].map(fieldType)).toEqual([
    'integer',
    'integer',
    'text',
    'json',
    'bytes',
    'bytes',
  ]);
  expect(fieldType('boxes.json')).toBe('json');
  expect(fieldType('cls.jpg')).toBe('bytes');
});
