import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCodePoint } from '../../../test/any-text.js';
import { FileError } from './errors.js';
import { escapeControls, toMessage } from './escape-controls.js';

test('control characters of a terminal are escaped, and all other characters are kept', () => {
  expect(escapeControls('a\u001b[2Jb\u0007c\u009bd\u202ee\tf\ng\u2066h\u007fi')).toBe(
    'a\\u001b[2Jb\\u0007c\\u009bd\\u202ee\\tf\\ng\\u2066h\\u007fi',
  );
  expect(escapeControls('Käse 猫 🐈 \\ "')).toBe('Käse 猫 🐈 \\ "');
  expect(escapeControls('a\tb\n', '\t\n')).toBe('a\tb\n');
  expect(escapeControls('\ud83d')).toBe('\\ud83d');
});

test('escaped JSON has the same value, and contains no control character', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCodePoint }), (text) => {
      const shown = escapeControls(JSON.stringify({ [text]: text }));
      expect(JSON.parse(shown)).toEqual({ [text]: text });
      expect(shown).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
    }),
  );
});

test('an error message is one line of limited length, and the error has the full key as a field', () => {
  const key = `${'k'.repeat(5000)}\n\u001b]0;title\u0007`;
  const error = new FileError({ shard: 's', key }, `s: sample "${key}" is damaged (${key}).`);
  expect(error.key).toBe(key);
  expect(error.message).toMatch(
    /^s: sample "k{99}\.\.\. \(4\d\d\d characters\) \.\.\.k+\\n\\u001b\]0;title\\u0007" is damaged/,
  );
  expect(error.message.length).toBeLessThan(600);
});

test('names of ordinary length are not shortened', () => {
  const path = `/data/${'folder/'.repeat(30)}photo.jpg`;
  expect(toMessage(`${path} cannot be read.`)).toBe(`${path} cannot be read.`);
});
