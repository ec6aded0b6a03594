import { type OptionEntry, OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { FOREIGN_NAMES } from './foreign-names.js';
import { LOADER_OPTIONS } from './option-table.js';
import { checkOptions, type LoaderOptions } from './options.js';

const ALL: Readonly<Record<string, OptionEntry>> = LOADER_OPTIONS;

test('an omitted or undefined option has its default, and other options are unchanged', () => {
  const checked = checkOptions({ seed: undefined, batchSize: 3, cacheSize: '64MiB', epochsPerLoop: Infinity });
  expect(checked).toMatchObject({ batchSize: 3, cacheSize: 64 * 2 ** 20, epochsPerLoop: Infinity, prefetchBatches: 4 });
  expect([checked.seed, checked.checksum, checked.masks, checked.customSteps]).toEqual([
    undefined,
    'first-epoch',
    [],
    {},
  ]);
});

const WRONG: Readonly<Record<OptionEntry['kind'], unknown>> = {
  switch: 'yes',
  choice: 'neither',
  choices: ['neither'],
  whole: -1,
  bytes: '200 sheep',
  seconds: 0,
  share: 1.01,
  text: 7,
  texts: [7],
  classes: [0.5],
  list: 7,
  path: '',
  own: -1,
};

test.each(Object.entries(ALL).filter(([name]) => name !== 'state'))(
  'an invalid value of "%s" throws an error that names the option and the allowed values',
  (name, entry) => {
    const check = () => checkOptions({ [name]: WRONG[entry.kind] } as LoaderOptions);
    expect(check).toThrow(OptionError);
    expect(check).toThrow(new RegExp(`^The loader's option ${name}(\\.0)? is invalid: it is .+, not .+\\.$`));
  },
);

test('option names of other libraries are mapped to options that exist', () => {
  for (const [name, instead] of Object.entries(FOREIGN_NAMES)) {
    expect(
      Object.keys(ALL).filter((option) => new RegExp(`\\b${option}\\b`).test(instead)),
      name,
    ).not.toEqual([]);
    expect(Object.keys(ALL).map((option) => option.toLowerCase())).not.toContain(name);
  }
});

test.each([
  [{ batchsize: 3 }, 'A loader has no option "batchsize"; did you mean "batchSize"?'],
  [{ epoch_size: 1000 }, 'A loader has no option "epoch_size": set samplesPerEpoch.'],
  [{ drop_last: true }, `A loader has no option "drop_last": set lastBatch: 'drop'.`],
  [{ lastBatch: 'padd' }, 'option lastBatch is invalid: it is "pad", "drop" or "partial", not "padd".'],
  [{ workers: 5000 }, 'option workers is invalid: it is a whole number from 1 to 1,024, not 5000.'],
  [{ keys: 'cat/1' }, 'option keys is invalid: it is a list of texts, not "cat/1".'],
  [{ customSteps: { pixel: { module: 'x.mjs' } } }, 'option customSteps is invalid: it is { fields, pixels, batch }'],
  ['train224', 'A loader takes options as an object, not "train224".'],
])('%j is rejected with a clear message', (options, sentence) => {
  expect(() => checkOptions(options as LoaderOptions)).toThrow(sentence);
});
