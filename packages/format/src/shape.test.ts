import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseShape } from './shape.js';

const schema = z.strictObject({
  name: z.enum(['mixup', 'cutmix']),
  size: z.number().int().min(1).max(9).optional(),
  share: z.number().positive().optional(),
  pair: z.tuple([z.number(), z.number()]).optional(),
  fill: z.union([z.number(), z.array(z.number()).min(3)]).optional(),
  is: z.boolean().optional(),
  text: z.string().regex(/^a+$/, 'must be of the letter a').optional(),
});

test.each([
  [7, ': must be an object, and is 7'],
  [{}, 'name: is missing; it must be "mixup" or "cutmix"'],
  [{ name: 'x' }, 'name: must be "mixup" or "cutmix", and is "x"'],
  [{ name: 'mixup', size: 0 }, 'size: must be at least 1, and is 0'],
  [{ name: 'mixup', size: 10 }, 'size: must be at most 9, and is 10'],
  [{ name: 'mixup', size: 1.5 }, 'size: must be a whole number, and is 1.5'],
  [{ name: 'mixup', size: Number.NaN }, 'size: must be a number, and is NaN'],
  [{ name: 'mixup', share: 0 }, 'share: must be more than 0, and is 0'],
  [{ name: 'mixup', pair: [1] }, 'pair: must have at least 2 entries'],
  [{ name: 'mixup', pair: [1, 'x'.repeat(99)] }, `pair.1: must be a number, and is "${'x'.repeat(39)}...`],
  [{ name: 'mixup', fill: 'x' }, 'fill: must be a number or a list, and is "x"'],
  [{ name: 'mixup', fill: [1, 'x', 3] }, 'fill.1: must be a number, and is "x"'],
  [{ name: 'mixup', fill: [1] }, 'fill: must have at least 3 entries'],
  [{ name: 'mixup', is: 'yes' }, 'is: must be true or false, and is "yes"'],
  [{ name: 'mixup', text: 'b' }, 'text: must be of the letter a'],
  [{ nome: 'mixup' }, ': does not take "nome"'],
  [{ name: 'mixup', ratio: 2, more: 1 }, ': does not take "ratio", "more"'],
])('%j: %s', (value, sentence) => {
  const wrong = ({ where, what }: { where: string; what: string }) => new Error(`${where}: ${what}`);
  expect(() => parseShape(schema, value, wrong)).toThrow(sentence);
});

test('the error for a missing value of several possible kinds lists them all', () => {
  const schema = z.strictObject({ size: z.union([z.number(), z.array(z.number())]) });
  const wrong = ({ where, what }: { where: string; what: string }) => new Error(`${where} ${what}`);
  expect(() => parseShape(schema, {}, wrong)).toThrow('size is missing; it must be a number or a list');
});
