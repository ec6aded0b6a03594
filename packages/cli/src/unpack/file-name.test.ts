import { expect, test } from 'vitest';
import { fileName } from './file-name.js';

test('an image has its own name back, and what belongs to it has the same stem', () => {
  expect(fileName('cat/IMG 0', 'jpg', 'cat/IMG 0.JPG')).toBe('cat/IMG 0.JPG');
  expect(fileName('cat/IMG 0', 'cls', 'cat/IMG 0.JPG')).toBe('cat/IMG 0.cls');
  expect(fileName('cat/a_b', 'jpeg', 'cat/a.b.jpeg')).toBe('cat/a.b.jpeg');
  expect(fileName('cat/a_b', 'seg.png', 'cat/a.b.jpeg')).toBe('cat/a.b.seg.png');
});

test('an image that was encoded anew has the ending of what it is', () => {
  expect(fileName('a', 'png', 'a.GIF')).toBe('a.png');
});

test('a file is called by key and field where the sample was not packed from that name', () => {
  expect(fileName('a', 'jpg', '')).toBe('a.jpg');
  expect(fileName('a', 'jpg', '../b.jpg')).toBe('a.jpg');
  expect(fileName('a', 'jpg', 'noending')).toBe('a.jpg');
});
