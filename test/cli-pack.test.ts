import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { bin } from './cli-process.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder, PNG, samplesOf, tree } from './pack-workbench.js';

test('pack prints what it packed and where, how long it took, and the next command', async () => {
  const output = newFolder();
  expect(await shardtool('pack', 'examples/photos', output, '--max-shard-bytes', '1MiB')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Packed 60 files \(2\.6 MB\), 60 samples of 6 classes, into 3 shards in \S+ \(2\.7 MB\)\.\n {2}1 file skipped: 1 md \(skipped\.jsonl lists it\)\nTook [\d.]+ s \([\d,]+ samples\/s, \S+ .?B\/s\)\. Next: shardtool bench \S+\n$/,
    ),
    stderr: '',
  });
  expect(filesIn(output).filter((file) => file.endsWith('.tar'))).toHaveLength(3);
});

test('names, order, classes, fields and patterns are set with flags', async () => {
  const source = tree({
    'dog/1.jpg': jpeg('dog 1'),
    'dog/1.seg.png': PNG,
    'cat/1.jpg': jpeg('cat 1'),
    'cat/1.json': '{}',
    'cat/1.box.npy': 'x',
    'cat/2.jpg': jpeg('cat 2'),
    'cat/raw/3.jpg': jpeg('cat 3'),
    'classes.txt': 'dog\ncat\n',
  });
  const output = newFolder();
  const { code, stdout } = await shardtool(
    ...[
      'pack',
      source,
      output,
      '--name',
      'train',
      '--format',
      'msgpack',
      '--seed',
      '7',
      '--no-shuffle',
      '--workers',
      '1',
    ],
    ...[
      '--classes',
      path.join(source, 'classes.txt'),
      '--fields',
      'seg.png,box.npy',
      '--include',
      'cat/**',
      '--include',
      'dog/**',
    ],
    ...['--exclude', '**/raw/**', '--exclude', '**/2.*', '--max-shard-samples', '1', '--json'],
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ files: 5, samples: 2, shards: 2, classes: ['dog', 'cat'] });
  expect(filesIn(output).filter((file) => file.endsWith('.msgpack'))).toEqual([
    'train-000000.msgpack',
    'train-000001.msgpack',
  ]);
  expect((await samplesOf(output)).map(({ key, cls, fields }) => [key, cls, Object.keys(fields)])).toEqual([
    ['cat/1', 1, ['box.npy', 'cls', 'jpg', 'json']],
    ['dog/1', 0, ['cls', 'jpg', 'seg.png']],
  ]);
});

test('--files packs the listed files, and --labels reads classes and columns from a table', async () => {
  const source = tree({ 'b.jpg': jpeg('b'), 'a.jpg': jpeg('a'), 'c.jpg': jpeg('c') });
  writeFileSync(path.join(source, 'list.txt'), 'c.jpg\na.jpg\n');
  writeFileSync(
    path.join(source, 'labels.jsonl'),
    '{"path":"a.jpg","class":"x","n":1}\n{"path":"c.jpg","class":"y","n":2}\n',
  );
  const output = newFolder();
  const flags = ['--files', path.join(source, 'list.txt'), '--labels', path.join(source, 'labels.jsonl'), '--quiet'];
  expect(await shardtool('pack', source, output, '--no-shuffle', ...flags)).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  });
  const samples = await samplesOf(output);
  expect(samples.map(({ key, cls, columns }) => [key, cls, columns]).sort()).toEqual([
    ['a', 0, { n: 1 }],
    ['c', 1, { n: 2 }],
  ]);
});

test('--resize, --quality and --image-format make smaller images in another format', async () => {
  const output = newFolder();
  const flags = ['--include', 'cat/**', '--resize', '64', '--quality', '70', '--image-format', 'webp'];
  expect(await shardtool('pack', 'examples/photos', output, ...flags)).toMatchObject({ code: 0 });
  const samples = await samplesOf(output);
  expect(samples).toHaveLength(10);
  for (const { size, fields } of samples) {
    expect(Math.min(...size)).toBe(64);
    expect(Object.keys(fields)).toEqual(['cls', 'webp']);
    expect(fields.webp!.length).toBeLessThan(8000);
  }
});

test('a bad file ends the pack, or is quarantined up to --max-bad', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': 'text', 'a/3.jpg': jpeg(3) });
  const stopped = await shardtool('pack', source, newFolder());
  expect(stopped.code).toBe(1);
  expect(stopped.stderr).toMatch(/a\/2\.jpg .*--on-bad quarantine\.\n$/);

  const tooMany = await shardtool('pack', source, newFolder(), '--on-bad', 'quarantine');
  expect(tooMany.code).toBe(1);
  expect(tooMany.stderr).toContain('1 of 3 images is bad, more than --max-bad allows (1 %)');

  const output = newFolder();
  const { code, stdout } = await shardtool('pack', source, output, '--on-bad', 'quarantine', '--max-bad', '34%');
  expect(code).toBe(0);
  expect(stdout).toContain('1 file is bad and was skipped: quarantine.jsonl says why');
  expect(JSON.parse(readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8'))).toMatchObject({ path: 'a/2.jpg' });
});

test('packing reports a pattern of --exclude that matches nothing because it lacks a folder', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2) });
  const hint = `--exclude '2.*' matches nothing directly below ${source}: to match in all folders, use '**/2.*'`;
  expect((await shardtool('pack', source, newFolder(), '--exclude', '2.*')).stdout).toContain(hint);
  expect((await shardtool('pack', source, newFolder(), '--exclude', '**/2.*')).stdout).not.toContain('matches nothing');
});

test('--dry-run only prints what would be done, and --overwrite replaces the result of an earlier pack', async () => {
  const output = newFolder();
  const dry = await shardtool('pack', 'examples/photos', output, '--dry-run', '--max-shard-samples', '25');
  expect(dry.stdout).toContain(`Would pack 60 files (2.6 MB), 60 samples of 6 classes, into 3 shards in ${output}.`);
  expect(existsSync(output)).toBe(false);
  await shardtool('pack', 'examples/photos', output, '--quiet', '--max-shard-samples', '25');
  expect((await shardtool('pack', 'examples/photos', output)).code).toBe(1);
  expect((await shardtool('pack', 'examples/photos', output, '--overwrite', '--quiet')).code).toBe(0);
  expect(filesIn(output).filter((file) => file.endsWith('.tar'))).toHaveLength(1);
});

test('a dry run exits with 1 if the pack would stop at a bad file, and with 0 if it would skip the file', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': 'no image' });
  const codeOf = async (...more: string[]) =>
    (await shardtool('pack', source, newFolder(), '--check', 'header', '--max-bad', '90%', ...more)).code;
  expect([await codeOf('--dry-run'), await codeOf()]).toEqual([1, 1]);
  const left = ['--on-bad', 'quarantine'];
  expect([await codeOf('--dry-run', ...left), await codeOf(...left)]).toEqual([0, 0]);
});

/** In shards of eight: packing them takes long enough to be interrupted. */
const FILES = 1600;

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s ends a pack with a message, and leaves nothing that looks complete', async (signal, exitCode) => {
  const source = tree(Object.fromEntries(Array.from({ length: FILES }, (_, i) => [`a/${i}.jpg`, jpeg(i)])));
  const output = path.join(emptyFolder(), 'shards');
  const child = spawn(process.execPath, [bin, 'pack', source, output, '--max-shard-samples', '8', '--workers', '1']);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  while (!existsSync(path.join(output, '000001.tar'))) await sleep(5);
  child.kill(signal);
  expect(await once(child, 'close')).toEqual([exitCode, null]);
  expect(stderr).toBe(`shardtool: stopped by ${signal}. ${output} is not complete: repeat the command to resume.\n`);
  expect(filesIn(output).filter((file) => /^dataset\.json$|\.lock$|\.part$/.test(file))).toEqual([]);
  await expect(openDataset(output)).rejects.toThrow('its pack did not finish');
  const flags = ['--max-shard-samples', '8', '--workers', '1', '--json'];
  const { code, stdout } = await shardtool('pack', source, output, ...flags);
  expect([code, JSON.parse(stdout).keptShards > 1]).toEqual([0, true]);
  expect((await openDataset(output)).size).toBe(FILES);
});
