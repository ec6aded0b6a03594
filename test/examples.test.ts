import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { bin } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

/** Runs an example to its end. Returns its output. */
function run(example: string, ...args: string[]): string {
  return execFileSync(process.execPath, [`examples/${example}`, ...args], { encoding: 'utf8' });
}

/** Kills the process that imports it after it has renamed this many files. */
const KILLER = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { renameSync } = fs;
  let left = RENAMES;
  fs.renameSync = (...names) => {
    renameSync(...names);
    if (--left === 0) process.kill(process.pid, 'SIGKILL');
  };
  syncBuiltinESMExports();
`;

/** Runs an example that is killed when it has written this many states. */
function runKilled(states: number, example: string, ...args: string[]): void {
  const killer = `data:text/javascript,${encodeURIComponent(KILLER.replace('RENAMES', String(states)))}`;
  const { signal } = spawnSync(process.execPath, ['--import', killer, `examples/${example}`, ...args]);
  expect(signal).toBe('SIGKILL');
}

test('the example of features writes columns for every image, usable in an overlay and in where', async () => {
  const shards = await packedPhotos();
  const output = path.join(emptyFolder(), 'features.parquet');
  runKilled(2, 'features.mjs', shards, output);
  expect(existsSync(output)).toBe(false);
  run('features.mjs', shards, output);
  expect(readdirSync(path.dirname(output))).toEqual(['features.parquet']);
  execFileSync(process.execPath, [bin, 'overlay', 'add', shards, 'colours', '--labels', output]);
  await using dataset = await openDataset(shards, { overlay: 'colours' });
  const blues: number[] = [];
  for await (const { columns } of dataset.samples()) {
    expect(Object.keys(columns)).toEqual(expect.arrayContaining(['red', 'green', 'blue']));
    blues.push(columns.blue as number);
  }
  expect(blues.length).toBe(60);
  let found = 0;
  for await (const { labels } of dataset.loader({ transform: 'raw', where: 'blue > 100', lastBatch: 'partial' })) {
    found += labels.length;
  }
  expect(found).toBeGreaterThan(0);
  expect(found).toBe(blues.filter((blue) => blue > 100).length);
});

test('the example of masks creates masks and applies them in custom steps', async () => {
  const masked = path.join(emptyFolder(), 'masked');
  const said = run('masks.mjs', await packedPhotos(), masked);
  const [, bright, shown] = /^60 images with masks: ([\d.]+) % .* bright, ([\d.]+) % are not black$/m.exec(said) ?? [];
  expect(Number(bright)).toBeGreaterThan(5);
  expect(Number(bright)).toBeLessThan(50);
  expect(shown).toBe(bright);
  await using dataset = await openDataset(masked);
  expect(dataset.fields).toEqual(['cls', 'fore.npy', 'jpg']);
});

test('the example of training learns, and reaches the same weights if it is killed in between', async () => {
  const shards = await packedPhotos();
  const folder = emptyFolder();
  const whole = path.join(folder, 'whole.json');
  const losses = Array.from(run('train.mjs', shards, whole).matchAll(/loss ([\d.]+)/g), ([, loss]) => Number(loss));
  expect(losses.length).toBe(5);
  expect(losses[4]).toBeLessThan(losses[0]! - 0.2);
  const killed = path.join(folder, 'killed.json');
  runKilled(13, 'train.mjs', shards, killed);
  const before = JSON.parse(readFileSync(killed, 'utf8'));
  run('train.mjs', shards, killed);
  const after = JSON.parse(readFileSync(killed, 'utf8'));
  expect(after.weights).toEqual(JSON.parse(readFileSync(whole, 'utf8')).weights);
  expect(after.weights).not.toEqual(before.weights);
});

test.each(['features.mjs', 'masks.mjs', 'train.mjs', 'inference/model.mjs'])(
  'the example %s without arguments prints its usage in one line, and leaves no file',
  (example) => {
    const folder = emptyFolder();
    // An example that needs the last argument reports that before anything is opened.
    const { status, stderr } = spawnSync(process.execPath, [path.resolve('examples', example), 'shards'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^Usage: node examples\/.*mjs shards .*\n$/)]);
    expect(readdirSync(folder)).toEqual([]);
  },
);

test.each(['features.mjs', 'masks.mjs', 'train.mjs', 'inference/model.mjs'])(
  'the example %s reports a missing location in one line, and leaves no file',
  (example) => {
    const folder = emptyFolder();
    const args = [path.resolve('examples', example), path.join(folder, 'nowhere'), path.join(folder, 'output')];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^.*nowhere cannot be opened: .*\n$/)]);
    expect(readdirSync(folder)).toEqual([]);
  },
);
