import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextRows } from './text-rows.js';

test('a text is found at its first position in the list, and the first repeated text is reported', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ä', '\0'), maxLength: 3 });
  fc.assert(
    fc.property(fc.array(text), text, (texts, other) => {
      const rows = new TextRows(texts);
      for (const one of [...texts, other]) {
        const row = texts.indexOf(one);
        expect(rows.get(one)).toBe(row === -1 ? undefined : row);
      }
      const second = texts.findIndex((one, at) => texts.indexOf(one) < at);
      expect(rows.repeated).toEqual(second === -1 ? null : [texts.indexOf(texts[second]!), second]);
    }),
  );
});
