import { expect, test } from 'vitest';
import { fileName } from './file-name.js';

test('an image gets its original name back, and its other fields get the same stem', () => {
  expect(fileName('cat/IMG 0', 'jpg', 'cat/IMG 0.JPG')).toBe('cat/IMG 0.JPG');
  expect(fileName('cat/IMG 0', 'cls', 'cat/IMG 0.JPG')).toBe('cat/IMG 0.cls');
  expect(fileName('cat/a_b', 'jpeg', 'cat/a.b.jpeg')).toBe('cat/a.b.jpeg');
  expect(fileName('cat/a_b', 'seg.png', 'cat/a.b.jpeg')).toBe('cat/a.b.seg.png');
});

test('an image that was encoded again gets the extension of its new format', () => {
  expect(fileName('a', 'png', 'a.GIF')).toBe('a.png');
});

test('without a usable original name, a file is named by its key and field', () => {
  expect(fileName('a', 'jpg', '')).toBe('a.jpg');
  expect(fileName('a', 'jpg', '../b.jpg')).toBe('a.jpg');
  expect(fileName('a', 'jpg', 'noending')).toBe('a.jpg');
});
