// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these texts are sources with templates
import { expect, test } from 'vitest';
import { faultsOf } from '../scripts/check-sentences.mjs';

test.each([
  ["throw new E({}, `The option ${option('a')} is wrong.`);", '1: an option'],
  ["const x = 1;\nthrow new E({}, `${isGiven ? optionName('a') : ''} is wrong`);", '2: an option'],
  ["const message = sentence`${option('a')}` + ' and more';", '1: an option'],
  ["const message = 'set ' + option('a');", '1: an option'],
  ["const message = 'exclude it with --exclude-keys';", '1: "--exclude-keys" is a flag'],
  ['const message = `${key}: exclude it (--exclude-keys)`;', '1: "(--exclude-keys" is a flag'],
  ["throw new OptionError({}, 'end it with toDtype');", '1: "toDtype" in a text'],
  ['throw new StateError({}, `keep ${a} and ` + "its pixelDtype");', '1: "pixelDtype" in a text'],
])('a message that only one interface would spell correctly is reported: %s', (source, fault) => {
  const faults = faultsOf(source);
  expect(faults.length).toBe(1);
  expect(faults[0]).toMatch(new RegExp(`^${fault.replace('(', '\\(')}`));
});

test.each([
  "throw new E({}, sentence`The option ${option('a')} is wrong, and ${`${name}`} too.`);",
  "throw new E({}, sentence`Also ${isGiven ? sentence`set ${option('a')}` : ''}.`);",
  "const message = tell(`a ${quote(option('a'))}`);",
  "throw new OptionError({}, sentence`end ${'it'} with toDtype`);",
  "const row = { name: 'toDtype' };",
  'const message = `Run "shardtool verify ${path} --fix" first.`;',
  "const table = { fix: { help: 'With --fix, repairs' } };",
])('a correct template, a command and a description of a flag are accepted: %s', (source) => {
  expect(faultsOf(source)).toEqual([]);
});
