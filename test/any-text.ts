import fc from 'fast-check';

/** Number of code points before the surrogates, which are not characters. */
const BEFORE = 0xd800;
const HALVES = 0x800;

/**
 * Any code point, as a unit of `fc.string`. It gives the same texts as fast-check's `binary`, which spends a second on a table of all
 * code points for each property.
 */
export const anyCodePoint: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - HALVES }).map(
  (number) => String.fromCodePoint(number < BEFORE ? number : number + HALVES),
  (text) => {
    const code = (text as string).codePointAt(0)!;
    if (String.fromCodePoint(code) !== text) throw new Error('more than one');
    return code < BEFORE ? code : code - HALVES;
  },
);
