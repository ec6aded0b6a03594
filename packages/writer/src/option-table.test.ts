import type { OptionEntry, OptionTable, OptionValue } from '@shardtool/base';
import { MAX_PIXELS, OUTPUT_LAYOUTS, WRITTEN_LAYOUTS } from '@shardtool/format';
import { expect, expectTypeOf, test } from 'vitest';
import { CONVERT_OPTIONS, OUTPUT_OPTIONS, PACK_OPTIONS } from './option-table.js';
import { checkOptions, type OutputOptions, PACK_DEFAULTS, type PackOptions } from './options.js';
import { OTHER_INDEXES } from './shard/other-indexes.js';

type Values<Entries extends OptionTable> = {
  [Name in keyof Entries]: OptionValue<Entries[Name]>;
};
/** What a program may give, as plain values. */
type Plain<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> };
/** Functions and signals are for programs alone. */
type OfTable<Options> = Omit<Plain<Options>, 'onProgress' | 'signal' | 'storage'>;

const ALL: OptionTable = { ...OUTPUT_OPTIONS, ...PACK_OPTIONS };

test('the types name the options of the table and no others, with the values that it allows', () => {
  expectTypeOf<keyof OfTable<OutputOptions>>().toEqualTypeOf<keyof typeof OUTPUT_OPTIONS>();
  expectTypeOf<keyof OfTable<PackOptions>>().toEqualTypeOf<keyof (typeof OUTPUT_OPTIONS & typeof PACK_OPTIONS)>();
  expectTypeOf<Values<typeof OUTPUT_OPTIONS>>().toExtend<OfTable<OutputOptions>>();
  expectTypeOf<Values<typeof OUTPUT_OPTIONS & typeof PACK_OPTIONS>>().toExtend<OfTable<PackOptions>>();
  expect(Object.keys(ALL)).toContain('seed');
});

test('the lists and limits of the table are those of the packages that it stands apart from', () => {
  expect(OUTPUT_OPTIONS.format.values).toEqual(WRITTEN_LAYOUTS);
  expect(new Set<string>(CONVERT_OPTIONS.format.values)).toEqual(new Set(OUTPUT_LAYOUTS));
  expect(OUTPUT_OPTIONS.index.values).toEqual(OTHER_INDEXES);
  expect(PACK_OPTIONS.maxPixels.default).toBe(MAX_PIXELS);
});

test('each default is a value that its option may have, and what holds where it is left out', () => {
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
  size: 0,
  seconds: 0,
  share: 1.01,
  text: 7,
  texts: [7],
  classes: [0.5],
  list: 7,
  path: '',
  own: null,
};

test.each(Object.entries(ALL))('a value that "%s" cannot have is an error that names it', (name, entry) => {
  expect(() => checkOptions({ [name]: WRONG[entry.kind] })).toThrow(`The option "${name}`);
});
