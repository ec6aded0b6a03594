import { expect, test } from 'vitest';
import { TextChoice } from './text-choice.js';

const choice = new TextChoice([7, 8]);
const sample = { source: 0, pass: 0, number: 3, occurrence: 0 };

test('one text of a list or of non-empty lines is chosen; any other value is kept', () => {
  const texts = ['a cat', 'a small cat', 'a cat on a mat'];
  expect(texts).toContain(choice.of(sample)(texts));
  expect(texts).toContain(choice.of(sample)(`${texts.join('\r\n')}\n\n`));
  const choose = choice.of(sample);
  for (const value of [null, 3, '', '\n', [], ['a', 1], { caption: texts }, Uint8Array.of(1)]) {
    expect(choose(value as never)).toEqual(value);
  }
});

test('over many passes each text is chosen about equally often, and the choice for a sample in a pass is fixed', () => {
  const texts = ['a', 'b', 'c', 'd'];
  const counts = new Map<unknown, number>();
  for (let pass = 0; pass < 4000; pass++) {
    const taken = choice.of({ ...sample, pass })(texts);
    expect(choice.of({ ...sample, pass })(texts)).toBe(taken);
    counts.set(taken, (counts.get(taken) ?? 0) + 1);
  }
  const chiSquare = texts.reduce((sum, text) => sum + ((counts.get(text) ?? 0) - 1000) ** 2 / 1000, 0);
  // 3 degrees of freedom, 99.9 %.
  expect(chiSquare).toBeLessThan(16.3);
});

test('the choice for a field does not depend on the fields before it, and differs between datasets', () => {
  const texts = Array.from({ length: 1000 }, (_, i) => String(i));
  const second = (first: unknown, source = 0) => {
    const choose = choice.of({ ...sample, source });
    choose(first as never);
    return choose(texts);
  };
  expect(second(null)).toBe(second(texts));
  expect(second(null, 1)).not.toBe(second(null, 0));
});
