import fc from 'fast-check';

/** Halves of pairs, which are no characters, lie behind so many code points. */
const BEFORE = 0xd800;
const HALVES = 0x800;

/**
 * Any code point, as a unit of `fc.string`. The same texts come as from its `binary`, which takes a second to make a table of all code
 * points, for each property anew.
 */
export const anyCodePoint: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - HALVES }).map(
  (number) => String.fromCodePoint(number < BEFORE ? number : number + HALVES),
  (text) => {
    const code = (text as string).codePointAt(0)!;
    if (String.fromCodePoint(code) !== text) throw new Error('more than one');
    return code < BEFORE ? code : code - HALVES;
  },
);
