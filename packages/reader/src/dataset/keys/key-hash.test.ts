import { expect, test } from 'vitest';
import { keyHash } from './key-hash.js';

test('the hash of a key is the one that splits have used since the first version', () => {
  const texts = ['', 'cat/1', 'cat/2', 'größe/7', 'subset 猫/1'];
  expect(texts.map(keyHash)).toEqual([2872998923, 1305101002, 774009463, 2525709062, 3895780736]);
});
