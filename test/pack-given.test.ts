import { readFileSync } from 'node:fs';
import path from 'node:path';
import { OptionError } from '@shardtool/base';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { maskedFolders } from './messy-folder.js';

const { folders: source } = maskedFolders();

async function keysOf(output: string): Promise<string[]> {
  await using dataset = await openDataset(output);
  const keys: string[] = [];
  for await (const { key } of dataset.samples()) keys.push(key);
  return keys.sort();
}

test('paired folders given as objects give the same bytes as with the flag', async () => {
  const [byFlag, byObject] = [emptyFolder(), emptyFolder()];
  expect((await shardtool('pack', source, byFlag, '--pair', 'masks=seg.png')).code).toBe(0);
  await pack({ folder: source }, byObject, { pair: [{ folder: 'masks', field: 'seg.png' }] });
  for (const file of ['000000.tar', '000000.parquet', 'dataset.json']) {
    expect(readFileSync(path.join(byObject, file)).equals(readFileSync(path.join(byFlag, file))), file).toBe(true);
  }
});

test('an append keeps the paired folders of the dataset', async () => {
  const output = emptyFolder();
  await pack(source, output, { pair: [{ folder: 'masks', field: 'seg.png' }] });
  await pack(source, output, { append: true });
  expect(await keysOf(output)).toEqual(['images/cat/i1', 'images/cat/i10', 'images/cat/i2']);
  await using dataset = await openDataset(output);
  expect(dataset.fields).toContain('seg.png');
});

test('a source with a list contains only the listed files, as with the option files', async () => {
  const list = ['cat/cat_001.jpg', 'cat/cat_002.jpg'];
  const [byList, byFiles] = [emptyFolder(), emptyFolder()];
  await pack({ folder: 'examples/photos', list }, byList);
  await pack('examples/photos', byFiles, { files: list });
  expect(await keysOf(byList)).toEqual(['cat/cat_001', 'cat/cat_002']);
  expect(readFileSync(path.join(byList, '000000.tar'))).toEqual(readFileSync(path.join(byFiles, '000000.tar')));
});

test.each([
  [
    'a flag as a string',
    source,
    { pair: ['masks=seg.png'] },
    'The option pair.0 must have the name of a folder, not its path, and a field',
  ],
  [
    'a path',
    source,
    { pair: [{ folder: 'a/masks', field: 'seg.png' }] },
    'The option pair.0 must have the name of a folder',
  ],
  [
    'an unknown field',
    source,
    { pair: [{ folder: 'a', field: 'b', x: 1 }] },
    'The option pair.0 must have the name of',
  ],
  ['no list', source, { pair: 'masks=seg.png' }, 'The option "pair" must be a list, such as [{ folder: "masks"'],
  ['two lists', { folder: source, list: [] }, { files: ['a.jpg'] }, 'so has the option "files"'],
  ['an unknown name', { folder: source, files: [] }, {}, 'takes "folder" and "list", not "files"'],
  ['a source without a folder', { list: [] }, {}, 'pack takes a path or a URL, not a value of type object'],
  ['a folder that is not a string', { folder: 5 }, {}, 'The source of a pack takes a path or a URL'],
])('pack rejects %s', async (_, given, options, message) => {
  const error = await pack(given as never, emptyFolder(), options as never).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OptionError);
  expect((error as Error).message).toContain(message);
});
