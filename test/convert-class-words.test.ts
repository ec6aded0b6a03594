/** Tars whose field `cls`, or another text field, is the name of the class. */
import { createReadStream, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder } from './pack-workbench.js';
import { archive, END, entry } from './tar-craft.js';

/** Writes a tar with one image per word, with the word in a field. Returns its path. */
function tarOf(file: string, words: readonly (string | Uint8Array | null)[], field = 'cls'): string {
  const at = path.basename(file, '.tar');
  const entries = words.flatMap((word, i) => [
    entry({ name: `${at}${i}.jpg` }, jpeg(`${at} ${i}`)),
    ...(word === null ? [] : [entry({ name: `${at}${i}.${field}` }, word)]),
  ]);
  writeFileSync(file, archive(...entries, END));
  return file;
}

async function labelsOf(output: string): Promise<(string | null)[]> {
  await using dataset = await openDataset(output);
  const found: (string | null)[] = [];
  for await (const { label } of dataset.samples()) found.push(dataset.classes[label] ?? null);
  return found;
}

const folder = emptyFolder();
tarOf(path.join(folder, 'a.tar'), ['dog\n', 'cat', null]);
tarOf(path.join(folder, 'b.tar'), ['  emu ', 'dog', '', 'Münster']);
const expected = ['dog', 'cat', null, 'emu', 'dog', null, 'Münster'];

test.each([
  ['tar', false],
  ['lmdb', false],
  ['msgpack', true],
  ['parquet', false],
] as const)(
  'words in the field cls become the classes of %s shards (existing index: %s)',
  async (format, isIndexed) => {
    const place = isIndexed ? emptyFolder() : folder;
    if (isIndexed) {
      tarOf(path.join(place, 'a.tar'), ['dog\n', 'cat', null]);
      tarOf(path.join(place, 'b.tar'), ['  emu ', 'dog', '', 'Münster']);
      await indexShards([place]);
    }
    const output = newFolder();
    expect(await convert(place, output, { format, workers: 1, classColumn: 'cls' })).toMatchObject({ wordClasses: 0 });
    expect(await labelsOf(output)).toEqual(expected);
    expect((await verify(output, { workers: 1 })).faults).toBe(0);
  },
);

test('words become classes also from a stream, from another field, in resharded samples, and with a list of classes', async () => {
  const classes = ['emu', 'dog', 'cat', 'Münster', 'yak'];
  const tar = tarOf(path.join(emptyFolder(), 'a.tar'), ['dog', 'emu'], 'txt');
  const [streamed, resharded] = [newFolder(), newFolder()];
  await convert(createReadStream(tar), streamed, { workers: 1, classColumn: 'txt', classes });
  expect(await labelsOf(streamed)).toEqual(['dog', 'emu']);
  await using dataset = await openDataset(streamed);
  expect(dataset.classes).toEqual(classes);
  await convert(folder, resharded, { workers: 1, classColumn: 'cls', sortBy: 'class', maxShardSamples: 3 });
  expect(await labelsOf(resharded)).toEqual(['Münster', 'cat', 'dog', 'dog', 'emu', null, null]);
});

test('without the option the command reports that samples have no class, and how to set it', async () => {
  const { code, stdout } = await shardtool('convert', folder, newFolder(), '--workers', '1');
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining(
      '6 samples have no class, because the field cls is not a number: --class-column cls makes its text the class',
    ),
  ]);
});

test('the error for an invalid class name, or one that is not in the list, names shard and key', async () => {
  const long = tarOf(path.join(emptyFolder(), 'a.tar'), ['dog', 'x'.repeat(2000)]);
  const bytes = tarOf(path.join(emptyFolder(), 'a.tar'), ['dog', Uint8Array.of(0xff, 0xfe)]);
  for (const file of [long, bytes])
    await expect(convert(file, newFolder(), { classColumn: 'cls' })).rejects.toThrow(
      `${file}: field "cls" of sample "a1" is not the name of a class, which is UTF-8 text of at most 1024 bytes.`,
    );
  await expect(convert(folder, newFolder(), { classColumn: 'cls', classes: ['dog', 'cat'] })).rejects.toThrow(
    'has the class "emu", which is not in the list of classes',
  );
  await expect(convert(folder, newFolder(), { classColumn: 'clss' })).rejects.toThrow(
    'No shard has the column or field "clss" ("classColumn"); did you mean "cls"?; the label columns and fields with text are cls.',
  );
});
