import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { STEPS } from '#reader/transform/step-table';
import { compileTransform } from '#reader/transform/transform';
import { madeFiles } from '../scripts/step-docs.mjs';

test.each(Object.entries(madeFiles()))(
  '%s agrees with the table of steps (scripts/step-docs.mjs generates it)',
  (file, made) => {
    expect(readFileSync(file, 'utf8')).toBe(made);
  },
);

test.each(Object.entries(STEPS))(
  'every parameter of %s has a description',
  (_name, { help, tolerance, parameters }) => {
    for (const said of [help, ...Object.values(parameters).map((parameter) => parameter.help)]) {
      expect(said).toMatch(/^\S.*[.:]$/);
    }
    expect(tolerance).not.toBe('');
  },
);

test('an error describes each parameter of the step', () => {
  expect(() => compileTransform([{ name: 'randomCrop', size: 0 }])).toThrow(
    /Step 1 of the transform, randomCrop, is invalid \(size .*parameters: size \(a number or \[height, width\], 1 to 4096\), padding \(.*maskFill \(0 to 255\)/,
  );
});
