import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jpegStructure } from './jpeg-structure.js';

function structureOf(name: string) {
  return jpegStructure(readFileSync(new URL(`../../../../../test/fixtures/codec/${name}.jpg`, import.meta.url)));
}

test.each([
  ['420', { components: 3, scans: 1, layered: false, arithmetic: false, ended: true }],
  ['gray', { components: 1, scans: 1, layered: false, arithmetic: false, ended: true }],
  ['cmyk', { components: 4, scans: 1, layered: false, arithmetic: false, ended: true }],
  ['restart-blocks', { components: 3, scans: 1, layered: false, arithmetic: false, ended: true }],
  ['scan-per-component', { components: 3, scans: 3, layered: true, arithmetic: false, ended: true }],
  ['progressive-420', { components: 3, scans: 10, layered: true, arithmetic: false, ended: true }],
  ['arithmetic', { components: 3, scans: 1, layered: false, arithmetic: true, ended: true }],
  ['arithmetic-progressive-422', { components: 3, scans: 10, layered: true, arithmetic: true, ended: true }],
])('the coding of %s is detected from its markers', (name, expected) => {
  expect(structureOf(name)).toEqual(expected);
});

test('an end marker inside a segment does not end the image', () => {
  const withThumbnail = Uint8Array.of(0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9, 0xff, 0xda, 0, 2, 1, 2, 3);
  expect(jpegStructure(withThumbnail).ended).toBe(false);
  expect(jpegStructure(Uint8Array.of(...withThumbnail, 0xff, 0xff, 0xd9)).ended).toBe(true);
});

test('stuffed zeros and restart markers do not end a scan', () => {
  const scan = Uint8Array.of(0xff, 0xd8, 0xff, 0xda, 0, 2, 0xff, 0, 7, 0xff, 0xd3, 8, 0xff, 0xd9);
  expect(jpegStructure(scan)).toMatchObject({ scans: 1, ended: true });
});

test('arbitrary bytes never cause an exception', () => {
  const marker = fc.tuple(fc.constant(0xff), fc.nat(255)).map(([a, b]) => [a, b]);
  const pieces = fc.array(fc.oneof(marker, fc.array(fc.nat(255), { maxLength: 6 })), { maxLength: 40 });
  fc.assert(
    fc.property(pieces, (bytes) => {
      const { scans, ended } = jpegStructure(Uint8Array.from(bytes.flat()));
      expect(scans).toBeLessThanOrEqual(40);
      expect(typeof ended).toBe('boolean');
    }),
  );
});
