/** A conversion reads the payloads of shards without an index once, and finds what an index would have said. */
import { cpSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { FileChangedError, SampleChecksumError } from '@shardtool/base';
import type { OutputLayoutName } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert, indexShards } from '@shardtool/writer';
import { expect, onTestFinished, test } from 'vitest';
import { emptyFolder, packedPhotos } from './datasets.js';
import { faultyServer } from './faulty-server.js';
import { datasetDigestsOf, newFolder } from './pack-workbench.js';
import { archive, entry } from './tar-craft.js';

/** Shards of this layout as other software writes them: without indexes and dataset.json. */
async function foreign(format: OutputLayoutName): Promise<string> {
  const [made, folder] = [newFolder(), emptyFolder()];
  await convert(await packedPhotos(), made, { format, workers: 1 });
  const shards = format === 'parquet' ? path.join(made, 'data') : made;
  const isShard = (name: string) => name.endsWith(`.${format}`) && existsSync(path.join(shards, name));
  for (const name of readdirSync(shards).filter(isShard))
    cpSync(path.join(shards, name), path.join(folder, name), { recursive: true });
  return folder;
}

test.each(['tar', 'msgpack', 'parquet'] as const)(
  'shards of %s give the same files whether they were indexed before or not, in their order or sorted by width',
  async (format) => {
    const shards = await foreign(format);
    const before: Record<string, string>[] = [];
    const options = [{}, { format: 'msgpack' }, { sortBy: 'width' }, { where: 'width > 300' }] as const;
    const convertAll = async (check: (digests: Record<string, string>, number: number) => void) => {
      for (const [number, chosen] of options.entries()) {
        const output = newFolder();
        await convert(shards, output, { workers: 1, ...chosen });
        check(datasetDigestsOf(output), number);
        rmSync(output, { recursive: true });
      }
    };
    await convertAll((digests) => before.push(digests));
    await indexShards([shards]);
    await convertAll((digests, number) => expect(digests).toEqual(before[number]));
  },
);

test('a byte that changes in a transfer of a remote shard is never stored', async () => {
  const [folder, payload] = [emptyFolder(), new Uint8Array(100_000)];
  writeFileSync(path.join(folder, 'a.tar'), archive(entry({ name: 'one.bin' }, payload)));
  const server = await faultyServer(folder);
  onTestFinished(() => server.stop());
  const ends: string[] = [];
  for (let flipped = 0, transfers = 1; flipped < transfers; flipped++) {
    transfers = 0;
    // The byte belongs to the payload, as headers are at both ends of each transfer.
    server.fault = ({ method }) => (method === 'GET' && transfers++ === flipped ? 'flipped byte' : undefined);
    const output = newFolder();
    const end = await convert(`${server.url}/a.tar`, output, { workers: 1 }).then(
      () => 'converted',
      (error) => error.constructor.name,
    );
    ends.push(end);
    if (end !== 'converted') continue;
    await using dataset = await openDataset(output);
    expect(Buffer.from((await dataset.get('one')).fields.bin!).equals(payload)).toBe(true);
  }
  expect(new Set(ends)).toEqual(new Set(['converted', SampleChecksumError.name]));
});

test('a shard that is replaced while its samples are sorted is stored as it was or is, or refused', async () => {
  const folder = emptyFolder();
  const file = path.join(folder, 'a.tar');
  const tarOf = (keys: string) => archive(...[...keys].map((key) => entry({ name: `${key}.txt` }, keys)));
  const server = await faultyServer(folder);
  onTestFinished(() => server.stop());
  const [before, ends] = ['bac', [] as string[]];
  // Fewer samples, as many, and more.
  for (const after of ['d', 'cba', 'dcba']) {
    for (let replaced = 0, requests = 1; replaced < requests; replaced++) {
      requests = 0;
      writeFileSync(file, tarOf(before));
      server.fault = () => {
        if (requests++ === replaced) writeFileSync(file, tarOf(after));
        return undefined;
      };
      const output = newFolder();
      const end = await convert(`${server.url}/a.tar`, output, { workers: 1, sortBy: 'key' }).then(
        () => 'converted',
        (error) => error.constructor.name,
      );
      ends.push(end);
      if (end !== 'converted') continue;
      await using dataset = await openDataset(output);
      const stored: string[] = [];
      for await (const { key, fields } of dataset.samples()) stored.push(`${key} ${Buffer.from(fields.txt!)}`);
      const sorted = (keys: string) => [...keys].sort().map((key) => `${key} ${keys}`);
      expect([sorted(before), sorted(after)]).toContainEqual(stored);
    }
  }
  expect(new Set(ends)).toEqual(new Set(['converted', FileChangedError.name]));
});

test('a conversion that finds no sample leaves no files', async () => {
  const [folder, output] = [emptyFolder(), newFolder()];
  writeFileSync(path.join(folder, 'a.tar'), archive(entry({ name: 'README' }, 'no sample')));
  await expect(convert(folder, output, { workers: 1 })).rejects.toThrow('There is no sample to convert');
  expect(existsSync(output) ? readdirSync(output) : []).toEqual([]);
});
