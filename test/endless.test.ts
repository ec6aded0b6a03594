import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-process.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, tree } from './pack-workbench.js';

const source = tree({ '1.jpg': jpeg(1) });
const packed = newFolder();
await pack(source, packed);

test.runIf(existsSync('/proc/self'))(
  'a folder that cannot be created ends pack, convert and unpack with an error',
  async () => {
    const refused = { name: 'FileError', message: expect.stringMatching(/\/proc\/shardtool.* cannot be written/) };
    await expect(pack(source, '/proc/shardtool/x')).rejects.toMatchObject(refused);
    await expect(pack(source, '/proc/shardtool', { dedupe: true, dryRun: true })).rejects.toMatchObject({
      name: 'FileError',
    });
    await expect(convert(packed, '/proc/shardtool')).rejects.toMatchObject(refused);
    expect(await shardtool('unpack', packed, '/proc/shardtool')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^shardtool: \/proc\/shardtool.* cannot be used.*\n$/),
    });
  },
);

test('braces with an absurd number of expansions are rejected before they are expanded', async () => {
  const bomb = '{a,b}'.repeat(30);
  for (const given of [{ include: [bomb] }, { exclude: ['**/x', '{1..100000}'] }]) {
    await expect(pack(source, newFolder(), given)).rejects.toThrow(/expands to \d+ patterns because of its braces/);
  }
  await expect(openDataset(`${bomb}.tar`)).rejects.toThrow('expand to 1073741824 shards');
  await expect(openDataset('t-{0..99999999999}.tar')).rejects.toThrow('expand to 100000000000 shards');
  const few = await pack(tree({ 'a1.jpg': jpeg(1), 'b1.jpg': jpeg(2), 'c1.jpg': jpeg(3) }), newFolder(), {
    include: ['{a,b}{1..3}.jpg'],
  });
  expect(few.samples).toBe(2);
});

test('a line of labels that is nested 200,000 levels deep is reported', async () => {
  const labels = path.join(emptyFolder(), 'labels.jsonl');
  writeFileSync(labels, `{"path": "1.jpg", "deep": ${'['.repeat(200_000)}${']'.repeat(200_000)}}\n`);
  await expect(pack(source, newFolder(), { labels })).rejects.toThrow(`${labels}:1 is nested too deep`);
});
