import { expect, test } from 'vitest';
import { withFlags, withFlagsOnce } from './outcome.js';

const flags = ['max-shard-bytes', 'files', 'include', 'seed', 'world-size'];

test.each([
  ['The option "maxShardBytes" does not fit.', 'The option --max-shard-bytes does not fit.'],
  ['The option "files" stands for "include".', 'The option --files stands for --include.'],
  ["The loader's option seed is not right.", "The loader's option --seed is not right."],
  ['seed is -1: it must be whole.', '--seed is -1: it must be whole.'],
  ['worldSize must divide the batch.', '--world-size must divide the batch.'],
])('%j names flags as they are typed', (message, shown) => {
  expect(withFlags(message, flags)).toBe(shown);
});

test('words that happen to be names of options stay', () => {
  expect(withFlags('2 files of the seed bank; "workers" is another matter', flags)).toBe(
    '2 files of the seed bank; "workers" is another matter',
  );
});

test('a column or class of the data keeps its name if an option is called the same', () => {
  const message = 'The label column "seed" has the name of a column of the index, and there is no class "files".';
  expect(withFlags(message, flags)).toBe(message);
});

test('an option that a message names in both ways is named once', () => {
  expect(withFlagsOnce('give it as "maxShardBytes" (--max-shard-bytes), or "files" (--files)', flags)).toBe(
    'give it as --max-shard-bytes, or --files',
  );
});
