import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkPage } from './label-pages.js';
import type { Page } from './pages/pages.js';

const page: Page = {
  kind: 'data',
  offset: 0,
  bytes: 0,
  plainBytes: 0,
  codec: 'UNCOMPRESSED',
  levelBytes: 0,
  repetitionBytes: 0,
  values: 10,
  encoding: 8,
  crc32: null,
};
const LEVELS = { repetition: 0, definition: 1 };

/** A page of levels after their length, followed by these bytes. */
function pageOf(levels: readonly number[], rest: readonly number[]): Uint8Array {
  return Uint8Array.from([levels.length, 0, 0, 0, ...levels, ...rest]);
}

test('a run that claims to be far longer than the number of values is rejected before memory is allocated for it', () => {
  const right = pageOf([20, 1], [2, 3, 0b01_00_01_00, 0b01_00]);
  expect(() => checkPage(page, right, LEVELS)).not.toThrow();
  const endless = [0xfe, 0xff, 0xff, 0xff, 0x07, 1];
  const packed = [0xff, 0xff, 0xff, 0xff, 0x07];
  for (const runs of [endless, packed]) {
    expect(() => checkPage(page, pageOf(runs, [2, 3, 0]), LEVELS)).toThrow(
      'one of its runs is longer than the number of values',
    );
    expect(() => checkPage(page, pageOf([20, 1], [0, ...runs]), LEVELS)).toThrow(
      'one of its runs is longer than the number of values',
    );
    expect(() => checkPage({ ...page, encoding: 3 }, pageOf([20, 1], [9, 0, 0, 0, ...runs]), LEVELS)).toThrow(
      'one of its runs is longer',
    );
    const second: Page = { ...page, kind: 'data v2', levelBytes: runs.length };
    expect(() => checkPage(second, Uint8Array.from([...runs, 2, 3, 0]), LEVELS)).toThrow('one of its runs is longer');
  }
});

test('random pages are accepted or rejected, and never cause an endless loop', () => {
  const levels = fc.record({ repetition: fc.nat(2), definition: fc.nat(3) });
  const encoding = fc.constantFrom(0, 2, 3, 8);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), levels, encoding, (bytes, most, number) => {
      try {
        checkPage({ ...page, encoding: number }, bytes, most);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
  );
});
