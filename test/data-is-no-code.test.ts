/** SECURITY.md: the content of a dataset, and JSON, cannot load code or lead to other locations. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { addOverlay, openDataset, type TransformInput } from '@shardtool/reader';
import { beforeAll, expect, test } from 'vitest';
import { emptyFolder, packedPhotos } from './datasets.js';

const folder = emptyFolder();
const ran = path.join(folder, 'ran');
const step = { module: path.join(folder, 'step.mjs') };
let shards: string;

beforeAll(async () => {
  writeFileSync(
    step.module,
    `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(ran)}, '');\nexport default () => {};\n`,
  );
  shards = await packedPhotos();
});

async function firstBatch(location: string, options: object): Promise<void> {
  await using dataset = await openDataset(location);
  for await (const batch of dataset.loader({ batchSize: 4, transform: 'eval224', workers: 1, ...options })) {
    expect(batch.images).not.toBeNull();
    return;
  }
}

test('a custom step that the program sets is loaded, so the tests below would notice a trap', async () => {
  await firstBatch(shards, { customSteps: { fields: step } }).catch(() => undefined);
  expect(existsSync(ran)).toBe(true);
});

test('a transform, a state, a mixture file, an overlay and a dataset.json cannot load code', async () => {
  const trap = path.join(folder, 'trap');
  const module = path.join(folder, 'trap.mjs');
  writeFileSync(module, readFileSync(step.module, 'utf8').replace(JSON.stringify(ran), JSON.stringify(trap)));
  const steps = { fields: { module }, pixels: { module }, batch: { module } };
  const transforms = [{ name: module }, { name: 'resize', size: 8, module }, { name: 'centerCrop', size: 8, steps }];
  for (const transform of transforms) {
    await expect(firstBatch(shards, { transform: [transform] as unknown as TransformInput })).rejects.toThrow(
      'of the transform',
    );
  }

  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ batchSize: 4, transform: 'eval224', workers: 1 });
  await loader.info();
  const state = { ...loader.state(), steps, transform: module };
  await firstBatch(shards, { state }).catch((error: Error) => expect(error.name).toBe('StateError'));

  const mixture = path.join(folder, 'mixture.json');
  for (const more of [{ steps }, { transform: module }]) {
    writeFileSync(mixture, JSON.stringify({ mixture: [{ dataset: shards, weight: 1, ...more }] }));
    await expect(openDataset(mixture)).rejects.toThrow('mixture');
  }

  const own = await packedPhotos();
  await addOverlay(own, { name: 'clean', excludeKeys: ['cat/cat_001'] });
  appendFileSync(path.join(own, 'overlays/clean.jsonl'), `${JSON.stringify({ steps, module })}\n`);
  await expect(openDataset(own, { overlay: 'clean' })).rejects.toThrow('clean');

  const manifest = path.join(own, 'dataset.json');
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), steps, module }));
  await firstBatch(own, {});
  expect(existsSync(trap)).toBe(false);
});

test('the shard list of an MDS dataset cannot name files outside the dataset', async () => {
  const mds = path.join(folder, 'mds');
  mkdirSync(mds);
  writeFileSync(path.join(mds, 'shard.00000.mds'), '');
  writeFileSync(path.join(folder, 'secret.mds'), '');
  for (const basename of ['../secret.mds', '/etc/passwd', 'a/../../b.mds', 'https://elsewhere/x.mds', '..\\x.mds']) {
    const shard = { raw_data: { basename, bytes: 1, hashes: {} }, zip_data: null };
    writeFileSync(path.join(mds, 'index.json'), JSON.stringify({ version: 2, shards: [shard] }));
    await expect(openDataset(mds)).rejects.toThrow(`names ${basename}`);
  }
});
