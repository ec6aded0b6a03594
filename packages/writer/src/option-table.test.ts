import type { OptionEntry, OptionTable, OptionValue } from '@shardtool/base';
import { MAX_PIXELS, OUTPUT_LAYOUTS, WRITTEN_LAYOUTS } from '@shardtool/format';
import { expect, expectTypeOf, test } from 'vitest';
import { CONVERT_OPTIONS, OUTPUT_OPTIONS, PACK_OPTIONS } from './option-table.js';
import { checkOptions, type GivenOptions, type OutputOptions, PACK_DEFAULTS, type PackOptions } from './options.js';
import { OTHER_INDEXES } from './shard/other-indexes.js';

type Values<Entries extends OptionTable> = {
  [Name in keyof Entries]: OptionValue<Entries[Name]>;
};
/** Values that a program can give, as plain types. */
type Plain<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> };
/** Without the functions and signals that only programs can give. */
type OfTable<Options> = Omit<Plain<Options>, 'onProgress' | 'signal' | 'storage'>;

const ALL: OptionTable = { ...OUTPUT_OPTIONS, ...PACK_OPTIONS };

test('the option types have exactly the names and values of the table', () => {
  expectTypeOf<keyof OfTable<OutputOptions>>().toEqualTypeOf<keyof typeof OUTPUT_OPTIONS>();
  expectTypeOf<keyof OfTable<PackOptions>>().toEqualTypeOf<keyof (typeof OUTPUT_OPTIONS & typeof PACK_OPTIONS)>();
  expectTypeOf<Values<typeof OUTPUT_OPTIONS>>().toExtend<OfTable<OutputOptions>>();
  // The command line has a part as text.
  type OfPack = Omit<Values<typeof OUTPUT_OPTIONS & typeof PACK_OPTIONS>, 'part'>;
  expectTypeOf<OfPack>().toExtend<Omit<OfTable<GivenOptions>, 'part'>>();
  expect(Object.keys(ALL)).toContain('seed');
});

test('the lists and limits of the table equal those of the packages that it does not import', () => {
  expect(OUTPUT_OPTIONS.format.values).toEqual(WRITTEN_LAYOUTS);
  expect(new Set<string>(CONVERT_OPTIONS.format.values)).toEqual(new Set(OUTPUT_LAYOUTS));
  expect(OUTPUT_OPTIONS.index.values).toEqual(OTHER_INDEXES);
  expect(PACK_OPTIONS.maxPixels.default).toBe(MAX_PIXELS);
});

test('each default is a valid value and applies if the option is omitted', () => {
  const { quality, ...defaults } = PACK_DEFAULTS;
  expect(checkOptions(defaults)).toMatchObject(defaults);
  expect(checkOptions({})).toMatchObject(defaults);
  expect(checkOptions({ quality }).quality).toBe(90);
});

const WRONG: Readonly<Record<OptionEntry['kind'], unknown>> = {
  switch: 'yes',
  choice: 'neither',
  choices: ['neither'],
  whole: 1.5,
  bytes: 0,
  seconds: 0,
  share: 1.01,
  text: 7,
  texts: [7],
  classes: [0.5],
  list: 7,
  path: '',
  own: null,
};

test.each(Object.entries(ALL))('an invalid value of "%s" is an error that names the option', (name, entry) => {
  expect(() => checkOptions({ [name]: WRONG[entry.kind] })).toThrow(`The option "${name}`);
});
