import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readsOf, type Stretch, stretchesWithout } from './stretches.js';

const lengths = fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 30 })), { maxLength: 8 });
const spans = fc.array(fc.record({ offset: fc.nat(300), bytes: fc.nat(40) }), { maxLength: 6 });

test('removing spans from stretches keeps every other byte at its position', () => {
  fc.assert(
    fc.property(lengths, spans, (parts, holes) => {
      const stretches: Stretch[] = [];
      let offset = 0;
      let at = 0;
      for (const [gap, bytes] of parts) {
        offset += gap;
        stretches.push({ offset, bytes, at });
        offset += bytes;
        at += bytes;
      }
      const isIn = (byte: number) => holes.some((hole) => byte >= hole.offset && byte < hole.offset + hole.bytes);
      const expected = placesOf(stretches).filter(([byte]) => !isIn(byte));
      expect(placesOf(stretchesWithout(stretches, holes))).toEqual(expected);
    }),
  );
});

test('a gap next to a short stretch is read along, but not a gap between two long ones', () => {
  const lengthsRead = (...parts: number[]) => {
    let offset = 0;
    const stretches = parts.map((bytes) => {
      const stretch = { offset, bytes, at: offset };
      offset += bytes + 50;
      return stretch;
    });
    return readsOf(stretches, { gapBytes: 100 }).map((read) => read.bytes);
  };
  expect(lengthsRead(1000, 10, 20, 1000)).toEqual([2180]);
  expect(lengthsRead(1000, 1000)).toEqual([1000, 1000]);
});

/** Each byte of the file, with its position. */
function placesOf(stretches: readonly Stretch[]): [number, number][] {
  return stretches.flatMap(({ offset, bytes, at }) =>
    Array.from({ length: bytes }, (_, n): [number, number] => [offset + n, at + n]),
  );
}
