import fc from 'fast-check';
import { expect, test } from 'vitest';
import { didYouMean } from './did-you-mean.js';

const names = ['caption', 'score', 'batchSize', 'resize'];

test('a name that is almost correct returns the known name, whatever its spelling style', () => {
  expect(didYouMean('captoin', names)).toBe('; did you mean "caption"?');
  expect(didYouMean('batch_size', names)).toBe('; did you mean "batchSize"?');
  expect(didYouMean('rezise', names)).toBe('; did you mean "resize"?');
});

test('a name that resembles no known name returns nothing', () => {
  expect(didYouMean('workers', names)).toBe('');
  expect(didYouMean('', names)).toBe('');
  expect(didYouMean('xx', [])).toBe('');
});

test('a name that lacks one character is always found', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{4,12}$/), fc.nat(), (name, at) => {
      const place = at % name.length;
      expect(didYouMean(name.slice(0, place) + name.slice(place + 1), [name])).toContain(`"${name}"`);
    }),
  );
});
