import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { bin } from '../cli-process.js';
import { emptyFolder, packedPhotos } from '../datasets.js';

const FOLDER = 'examples/inference';

test(
  'the example of inference creates a model, runs it on a dataset, and stores the results as columns',
  async () => {
    const node = (...args: string[]) => execFileSync(process.execPath, args, { encoding: 'utf8' });
    const install = ['--yes', 'pnpm@12.21.0', 'install', '--frozen-lockfile', '--reporter=silent'];
    execFileSync('npx', install, { cwd: FOLDER, stdio: 'inherit' });
    const shards = await packedPhotos();
    const [model, found] = ['model.onnx', 'found.csv'].map((name) => path.join(emptyFolder(), name)) as [
      string,
      string,
    ];
    node(`${FOLDER}/model.mjs`, shards, model);
    const [, right] = /^(\d+) of 60 right$/m.exec(node(`${FOLDER}/infer.mjs`, shards, model, found)) ?? [];
    // One in six is correct by chance.
    expect(Number(right)).toBeGreaterThan(40);
    expect(readFileSync(found, 'utf8').split('\n').length).toBe(62);
    node(bin, 'overlay', 'add', shards, 'found', '--labels', found);
    await using dataset = await openDataset(shards, { overlay: 'found' });
    let same = 0;
    for await (const { label: cls, columns } of dataset.samples()) if (columns.found === dataset.classes[cls]) same++;
    expect(same).toBe(Number(right));
  },
  10 * 60_000,
);
