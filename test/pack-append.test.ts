import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileNotFoundError, OptionError, UnfinishedPackError } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import {
  BadFileError,
  compactDataset,
  convert,
  eraseSamples,
  KeyCollisionError,
  OutputNotEmptyError,
  type PackOptions,
  pack,
  repair,
  verify,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { checkOptions } from '#writer/options';
import { findPacked } from '#writer/pack/planning/base-dataset';
import { listChanges } from '#writer/pack/planning/source-changes';
import { Naming } from '#writer/plan/naming';
import { sourceFilesOf } from '#writer/source/source-files';
import { shardtool } from './cli-here.js';
import { smallImages } from './datasets.js';
import { startPack } from './pack-processes.js';
import { digestsOf, filesIn, JPEG, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of an append');

const OPTIONS: PackOptions = { maxShardSamples: 2, shuffle: false, workers: 1 };
const APPEND: PackOptions = { ...OPTIONS, append: true };

function source(): string {
  return tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2), 'fox/3.jpg': jpeg(3) });
}

function add(images: string, files: Record<string, string | Uint8Array>): void {
  for (const [file, content] of Object.entries(files)) {
    const target = path.join(images, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
}

async function classNames(output: string): Promise<[string, number][]> {
  return (await readManifest(output)).classes.map(({ name, samples }) => [name, samples]);
}

test.each<PackOptions>([{}, { format: 'lmdb' }, { format: 'msgpack', name: 'train' }, { index: ['wids', 'dali'] }])(
  'an append writes new images to new shards, adds new classes at the end, and changes nothing else: %j',
  async (options) => {
    const images = source();
    const output = newFolder();
    await pack(images, output, { ...OPTIONS, ...options });
    const before = digestsOf(output);
    const [first] = (await readManifest(output)).shards;
    const inode = statSync(path.join(output, first!.file)).ino;
    add(images, {
      'cat/0.jpg': jpeg(0),
      'cat/9.jpg': jpeg(9),
      'cat/9.json': '{}',
      'bee/5.jpg': jpeg(5),
      'fox/1.jpg': jpeg(8),
    });
    const report = await pack(images, output, APPEND);
    expect(report).toMatchObject({
      samples: 4,
      files: 5,
      shards: 2,
      classes: ['cat', 'fox', 'bee'],
      isCommitted: true,
    });
    expect((await samplesOf(output)).map(({ key, cls }) => [key, cls])).toEqual([
      ...[
        ['cat/1', 0],
        ['cat/2', 0],
        ['fox/3', 1],
      ],
      ...[
        ['bee/5', 2],
        ['cat/0', 0],
        ['cat/9', 0],
        ['fox/1', 1],
      ],
    ]);
    expect(await classNames(output)).toEqual([
      ['cat', 4],
      ['fox', 2],
      ['bee', 1],
    ]);
    expect((await readManifest(output)).fields.find(({ name }) => name === 'jpg')?.samples).toBe(7);
    const after = digestsOf(output);
    const changed = Object.keys(before).filter((file) => before[file] !== after[file]);
    expect(changed).toEqual(['dataset.json', 'pack.json', ...(options.index ? ['shardindex.json'] : [])]);
    expect(statSync(path.join(output, first!.file)).ino).toBe(inode);
    expect((await verify(output)).faults).toBe(0);
    if (options.index === undefined) return;
    const { shardlist } = JSON.parse(readFileSync(path.join(output, 'shardindex.json'), 'utf8'));
    expect(shardlist.map(({ url, nsamples }: { url: string; nsamples: number }) => [url, nsamples])).toEqual([
      ...[
        ['000000.tar', 2],
        ['000001.tar', 1],
      ],
      ...[
        ['000002.tar', 2],
        ['000003.tar', 2],
      ],
    ]);
    expect(filesIn(output).filter((file) => file.endsWith('.idx'))).toHaveLength(4);
  },
);

test('a dataset can grow repeatedly, and an append without new files changes nothing', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, OPTIONS);
  for (let round = 0; round < 3; round++) {
    add(images, { [`new${round}/1.jpg`]: jpeg(`round ${round}`) });
    expect(await pack(images, output, APPEND)).toMatchObject({ samples: 1, shards: 1 });
  }
  const { identity, shards } = await readManifest(output);
  expect(shards.map(({ file }) => file)).toEqual([
    '000000.tar',
    '000001.tar',
    '000002.tar',
    '000003.tar',
    '000004.tar',
  ]);
  expect(await pack(images, output, APPEND)).toMatchObject({ samples: 0, shards: 0, keptShards: 0, isCommitted: true });
  expect((await readManifest(output)).identity).toBe(identity);
  expect(filesIn(output).filter((file) => file.startsWith('pack.'))).toEqual(['pack.json']);
});

test('a reader that has the dataset open keeps the old version, and a new reader has all samples', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, OPTIONS);
  await using open = await openDataset(output);
  const samples = open.samples()[Symbol.asyncIterator]();
  const keys = [(await samples.next()).value!.key];
  add(images, { 'cat/7.jpg': jpeg(7) });
  await pack(images, output, APPEND);
  for (let next = await samples.next(); !next.done; next = await samples.next()) keys.push(next.value.key);
  expect(keys).toEqual(['cat/1', 'cat/2', 'fox/3']);
  expect(open.size).toBe(3);
  await using again = await openDataset(output);
  expect(again.size).toBe(4);
});

test('an append that is killed at any moment leaves the dataset readable, and resumes', async () => {
  const images = await smallImages({ samples: 40, classes: 2 });
  const all = { maxShardSamples: 3, workers: 1 };
  const before = newFolder();
  const files = filesIn(images);
  await pack(images, before, { ...all, files: files.slice(0, 12) });
  const undisturbed = newFolder();
  await pack(images, undisturbed, { ...all, files: files.slice(0, 12) });
  const begun = performance.now();
  await startPack(images, undisturbed, { ...all, append: true }).ended;
  const wholeMs = performance.now() - begun;
  for (let kills = 0; kills < 3 * TIMES; kills++) {
    const child = startPack(images, before, { ...all, append: true });
    await sleep(random() * wholeMs);
    child.process.kill('SIGKILL');
    await child.ended;
    await using dataset = await openDataset(before);
    expect([12, 40]).toContain(dataset.size);
  }
  await pack(images, before, { ...all, append: true });
  expect(digestsOf(before)).toEqual(digestsOf(undisturbed));
});

test('during an unfinished append a plain pack is rejected, and the append resumes or restarts', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, OPTIONS);
  add(images, { 'cat/7.jpg': jpeg(7), 'cat/8.jpg': jpeg(8), 'dog/9.jpg': 'no image' });
  const single = { ...APPEND, maxShardSamples: 1, workers: 1 };
  await expect(pack(images, output, single)).rejects.toBeInstanceOf(BadFileError);
  await expect(pack(images, output, OPTIONS)).rejects.toBeInstanceOf(OutputNotEmptyError);
  expect((await openDataset(output)).size).toBe(3);
  const other = { ...single, seed: 3, onBad: 'quarantine' as const, maxBad: 0.5 };
  await expect(pack(images, output, other)).rejects.toThrow('its seed was 0 and is now 3');
  expect(await pack(images, output, { ...other, seed: 0 })).toMatchObject({
    keptShards: 2,
    samples: 2,
    quarantined: 1,
  });

  add(images, { 'cat/91.jpg': jpeg(91), 'dog/92.jpg': 'no image' });
  await expect(pack(images, output, single)).rejects.toBeInstanceOf(BadFileError);
  expect(await pack(images, output, { ...other, restart: true })).toMatchObject({ keptShards: 0, samples: 1 });
  expect((await samplesOf(output)).map(({ key }) => key)).toEqual([
    'cat/1',
    'cat/2',
    'fox/3',
    'cat/7',
    'cat/8',
    'cat/91',
  ]);
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(['dog/9.jpg', 'dog/92.jpg']);
  expect(await pack(images, output, APPEND)).toMatchObject({ samples: 0 });
});

test('label columns continue in new shards, and must be those of the dataset', async () => {
  const images = source();
  const labels = path.join(tree({ 'labels.csv': 'path,class,x\ncat/1.jpg,a,1.5\nfox/3.jpg,b,2\n' }), 'labels.csv');
  const output = newFolder();
  await pack(images, output, { ...OPTIONS, labels });
  writeFileSync(labels, 'path,class,x\ncat/1.jpg,a,1.5\nfox/3.jpg,b,2\ncat/2.jpg,c,7\n');
  await pack(images, output, { ...APPEND, labels });
  expect((await samplesOf(output)).map(({ key, cls, columns }) => [key, cls, columns.x])).toEqual([
    ...[
      ['cat/1', 0, 1.5],
      ['fox/3', 1, 2],
    ],
    ['cat/2', 2, 7],
  ]);
  await expect(pack(images, output, APPEND)).rejects.toThrow(
    'has the label column "x", but no labels with it were given',
  );
  writeFileSync(labels, 'path,x\ncat/1.jpg,words\n');
  await expect(pack(images, output, { ...APPEND, labels })).rejects.toThrow('the labels have string');
});

test('an append can add label columns, which are null for older samples', async () => {
  const images = source();
  const labels = path.join(tree({ 'labels.csv': 'path,x\ncat/1.jpg,1.5\nfox/3.jpg,2\n' }), 'labels.csv');
  const output = newFolder();
  await pack(images, output, { ...OPTIONS, labels, index: [] });
  writeFileSync(labels, 'path,x,y,z\ncat/2.jpg,7,seven,3\n');
  await pack(images, output, { ...APPEND, labels, index: [] });
  const expected = [
    ['cat/1', { x: 1.5, y: null, z: null }],
    ['fox/3', { x: 2, y: null, z: null }],
    ['cat/2', { x: 7, y: 'seven', z: 3 }],
  ];
  const columnsOf = async (place: string) => {
    await using opened = await openDataset(place);
    const found: [string, object][] = [];
    for await (const { key, columns } of opened.samples()) found.push([key, columns]);
    return found;
  };
  expect(await columnsOf(output)).toEqual(expected);
  expect((await readManifest(output)).columns.map(({ name }) => name)).toEqual(['x', 'y', 'z']);
  expect(await verify(output)).toMatchObject({ faults: 0 });
  await using dataset = await openDataset(output);
  const keys: string[] = [];
  for await (const batch of dataset.loader({ batchSize: 3, where: 'y == null', shuffle: false, transform: 'raw' })) {
    keys.push(...batch.keys);
  }
  expect(keys).toEqual(['cat/1', 'fox/3']);

  const converted = newFolder();
  await convert(output, converted, { sortBy: 'key' });
  expect(await columnsOf(converted)).toEqual([expected[0], expected[2], expected[1]]);
  const chosen = newFolder();
  await convert(output, chosen, { where: 'y == null or z > 2' });
  expect(await columnsOf(chosen)).toEqual(expected);
  // The indexes of older shards that a repair rebuilds keep everything that they had.
  const { file } = (await readManifest(output)).shards[0]!;
  const shard = readFileSync(path.join(output, file));
  shard[shard.length >> 1]! ^= 1;
  writeFileSync(path.join(output, file), shard);
  expect(await repair(output, { source: images })).toMatchObject({ lostColumns: [], takenOut: 0 });
  expect(await columnsOf(output)).toEqual(expected);
  await compactDataset(output, {});
  expect(await columnsOf(output)).toEqual(expected);
  await eraseSamples(output, { keys: ['cat/2'] });
  expect(await columnsOf(output)).toEqual(expected.slice(0, 2));
  expect(await verify(output)).toMatchObject({ faults: 0 });
});

test('labels that contradict packed images are counted and listed, and the dataset is unchanged', async () => {
  const images = tree({ 'a.jpg': jpeg('a'), 'b.jpg': jpeg('b'), 'c.jpg': jpeg('c') });
  const labels = path.join(
    tree({ 'labels.csv': 'path,class,x\na.jpg,cat,1\nb.jpg,dog,2\nc.jpg,dog,3\n' }),
    'labels.csv',
  );
  const output = newFolder();
  await pack(images, output, { ...OPTIONS, labels });
  const before = await samplesOf(output);
  writeFileSync(labels, 'path,class,x\na.jpg,dog,1\nb.jpg,dog,7\nc.jpg,dog,3\n');
  const { changes } = await pack(images, output, { ...APPEND, labels });
  expect(changes).toEqual({ changed: 0, gone: 0, relabelled: 2, first: 'a.jpg' });
  expect(await samplesOf(output)).toEqual(before);
  const lines = readFileSync(path.join(output, 'changed.jsonl'), 'utf8').trim().split('\n').sort();
  expect(lines.map((line) => (JSON.parse(line) as { reason: string }).reason)).toEqual([
    'the labels have the class "dog", but the dataset has "cat"',
    'the labels have 7 in the column "x", but the dataset has 2',
  ]);
  const said = (await shardtool('pack', images, output, '--append', '--labels', labels)).stdout;
  expect(said).toContain('2 packed images have different labels now: their samples stay as they were packed');
  expect(said).toContain(
    `To apply the new labels to packed images: "shardtool overlay add ${output} relabelled --labels ${labels}"`,
  );
});

test('objects of packed images whose annotations have changed are counted', async () => {
  const images = tree({ 'a.jpg': JPEG, 'b.jpg': jpeg('b') });
  const coco = path.join(tree({}), 'coco.json');
  const say = (...boxes: readonly number[][]) =>
    writeFileSync(
      coco,
      JSON.stringify({
        images: [
          { id: 1, file_name: 'a.jpg' },
          { id: 2, file_name: 'b.jpg' },
        ],
        categories: [{ id: 1, name: 'cat' }],
        annotations: boxes.map((bbox, id) => ({ id, image_id: 1, category_id: 1, bbox })),
      }),
    );
  for (const format of ['tar', 'msgpack'] as const) {
    const output = newFolder();
    say([0, 0, 1, 1]);
    await pack(images, output, { ...OPTIONS, coco, format });
    expect((await pack(images, output, { ...APPEND, coco })).changes).toBeUndefined();
    say([0, 0, 0.5, 1]);
    expect((await pack(images, output, { ...APPEND, coco })).changes).toMatchObject({ relabelled: 1, first: 'a.jpg' });
  }
});

test('an append that does not match the dataset is rejected, and the dataset is unchanged', async () => {
  const images = source();
  const output = newFolder();
  await expect(pack(images, output, APPEND)).rejects.toBeInstanceOf(UnfinishedPackError);
  await pack(images, output, OPTIONS);
  const before = digestsOf(output);
  for (const [options, message] of [
    [{ format: 'msgpack' }, 'has shards of the format tar'],
    [{ classes: ['fox', 'cat'] }, 'Class 0 of the dataset is "cat", but the option "classes" has "fox" there'],
    [{ part: { index: 0, of: 2 } }, '"append" cannot be combined with "part"'],
    [{ overwrite: true }, 'cannot be combined with "overwrite"'],
  ] as [PackOptions, string][]) {
    const packing = pack(images, output, { ...APPEND, ...options });
    await expect(packing).rejects.toThrow(message);
    await expect(packing).rejects.toBeInstanceOf(OptionError);
  }
  rmSync(path.join(images, 'cat/1.jpg'));
  add(images, { 'cat/1.jpeg': jpeg('another') });
  const packing = pack(images, output, APPEND);
  await expect(packing).rejects.toBeInstanceOf(KeyCollisionError);
  await expect(packing).rejects.toThrow(
    'cat/1.jpeg would have the key "cat/1", which cat/1.jpg already has in the dataset',
  );
  expect(digestsOf(output)).toEqual(before);
});

test('new classes can be added at the end of a fixed list', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, { ...OPTIONS, classes: ['fox', 'cat'] });
  add(images, { 'bee/5.jpg': jpeg(5) });
  await expect(pack(images, output, { ...APPEND, classes: ['fox', 'cat'] })).rejects.toThrow(
    'which is not in the list of classes',
  );
  await pack(images, output, { ...APPEND, classes: ['fox', 'cat', 'ant', 'bee'] });
  expect(await classNames(output)).toEqual([
    ['fox', 1],
    ['cat', 2],
    ['ant', 0],
    ['bee', 1],
  ]);
});

test('the command prints what was added', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, OPTIONS);
  add(images, { 'cat/7.jpg': jpeg(7) });
  expect(await shardtool('pack', images, output, '--append')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Added 1 file \(.*\), 1 sample of 2 classes, in 1 shard to /),
    stderr: '',
  });
  expect(await shardtool('pack', images, output, '--append')).toMatchObject({
    code: 0,
    stdout: `${output} already has all of ${images}.\n`,
  });
});

test.each([{}, { applyChanges: true }])(
  'a dry run of an append counts what is new, changed and gone as the append does, and writes nothing: %j',
  async (more) => {
    const images = source();
    const output = newFolder();
    await pack(images, output, OPTIONS);
    add(images, { 'cat/9.jpg': jpeg(9), 'owl/4.jpg': jpeg(4), 'cat/1.jpg': jpeg(77) });
    rmSync(path.join(images, 'fox/3.jpg'));
    const before = [digestsOf(output), filesIn(output)];
    const dry = await pack(images, output, { ...APPEND, ...more, dryRun: true });
    expect([digestsOf(output), filesIn(output)]).toEqual(before);
    const { bytes, isCommitted, partialFields, ...done } = await pack(images, output, { ...APPEND, ...more });
    expect(dry).toMatchObject(done);
    expect(dry.changes).toMatchObject({ changed: 1, gone: 1 });
    expect(dry).toMatchObject({ isCommitted: false, samples: 'applyChanges' in more ? 3 : 2 });
  },
);

test('the output of a dry run of an append is a plan, and checks of files are refused', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, { ...OPTIONS });
  add(images, { 'cat/9.jpg': jpeg(9), 'cat/1.jpg': jpeg(77) });
  const { stdout, stderr } = await shardtool('pack', images, output, '--append', '--dry-run');
  expect(stderr).toBe('');
  expect(stdout).toContain('Would add 1 file (');
  expect(stdout).toContain('1 file has changed: their samples stay as they were packed (the first: cat/1.jpg)');
  await expect(pack(images, output, { ...APPEND, dryRun: true, check: 'decode' })).rejects.toThrow(
    'The option "check" cannot be combined with "append" and "dryRun"',
  );
  await expect(pack(images, newFolder(), { ...APPEND, dryRun: true })).rejects.toThrow(FileNotFoundError);
});

test('an append from a source without most of many packed files counts them, and does not list them', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, OPTIONS);
  const manifest = await readManifest(output);
  const files = sourceFilesOf(['cat/1.jpg', 'cat/9.jpg'], { memoryBytes: 1 << 20, folder: newFolder() });
  const changesOf = async (samples: number) => {
    const base = { folder: output, location: output, manifest: { ...manifest, samples }, quarantined: [] };
    const { samples: packed } = await findPacked(base, files, new Naming(checkOptions({})));
    const now = { root: `${images}/`, files, packed, labels: null, ownFiles: new Set<number>() };
    const { unlisted, changes } = await listChanges(base, now, checkOptions({ append: true }));
    return { unlisted, gone: changes?.gone };
  };
  rmSync(path.join(images, 'fox/3.jpg'));
  expect(await changesOf(3)).toMatchObject({ unlisted: 0, gone: 1 });
  expect(await changesOf(300_000)).toMatchObject({ unlisted: 299_999, gone: 0 });
  files.close();
});
