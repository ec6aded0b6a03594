import { expect, test } from 'vitest';
import { messageIn, OptionError, ShardtoolError } from './errors.js';
import {
  codeName,
  inPython,
  inTypeScript,
  onCommandLine,
  option,
  optionName,
  type Spelling,
  sentence,
} from './sentence.js';
import { recordError, reviveError } from './threads/error-record.js';

test.each<[Spelling, string]>([
  [inTypeScript, 'maxShardBytes is 1: set layout: "tar", or "overwrite" (annotations.maxBoxes).'],
  [inPython, 'max_shard_bytes is 1: set layout="tar", or "overwrite" (annotations.max_boxes).'],
  [onCommandLine, '--max-shard-bytes is 1: set --layout tar, or --overwrite (--annotations.max-boxes).'],
])('an error spells its options as the interface does', (spelling, message) => {
  const remedy = sentence`set ${option('layout', 'tar')}, or ${option('overwrite')}`;
  const error = new OptionError(
    {},
    sentence`${optionName('maxShardBytes')} is ${1}: ${remedy} (${optionName('annotations.maxBoxes')}).`,
  );
  expect(messageIn(error, spelling)).toBe(message);
  expect(messageIn(reviveError(structuredClone(recordError(error))), spelling)).toBe(message);
});

test.each<[Spelling, string]>([
  [inTypeScript, 'The step randomIoUCrop has no maxSize.'],
  [inPython, 'The step random_iou_crop has no max_size.'],
  [onCommandLine, 'The step randomIoUCrop has no maxSize.'],
])('an error spells steps and their parameters as the interface does', (spelling, message) => {
  const text = sentence`The step ${codeName('randomIoUCrop')} has no ${codeName('maxSize')}.`;
  const error = new OptionError({}, text);
  expect(messageIn(error, spelling)).toBe(message);
  expect(messageIn(reviveError(structuredClone(recordError(error))), spelling)).toBe(message);
  expect(error.options).toEqual([]);
});

test.each<[Spelling, string]>([
  [inTypeScript, 'End a.toDtype.tar with toDtype, or set maxRatio.'],
  [inPython, 'End a.toDtype.tar with to_dtype, or set max_ratio.'],
])('names in a message are spelled for the interface, and values of the user are unchanged', (spelling, message) => {
  const error = new OptionError({}, sentence`End ${'a.toDtype.tar'} with toDtype, or set maxRatio.`);
  expect(messageIn(error, spelling)).toBe(message);
  expect(messageIn(reviveError(structuredClone(recordError(error))), spelling)).toBe(message);
});

test('an error lists the options that it is about, and its JSON lists them too', () => {
  const error = new OptionError({}, sentence`Remove ${option('files')} or ${option('include')}; "files" is enough.`);
  expect(error.options).toEqual(['files', 'include']);
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    name: 'OptionError',
    help: 'docs/errors.md#optionerror',
    code: 'ERR_SHARDTOOL_OPTION',
    message: 'Remove "files" or "include"; "files" is enough.',
    options: ['files', 'include'],
  });
});

test('names in the data that equal an option are not changed in any interface', () => {
  const error = new ShardtoolError({}, sentence`The column "seed" of ${'maxShardBytes.csv'} has no option seed.`);
  expect(messageIn(error, onCommandLine)).toBe('The column "seed" of maxShardBytes.csv has no option seed.');
});

test('control characters are escaped in the message of every interface', () => {
  const error = new ShardtoolError({}, sentence`The key ${'a\u001b[1m'} needs ${option('keys')}.`);
  expect(messageIn(error, onCommandLine)).toBe('The key a\\u001b[1m needs --keys.');
});
