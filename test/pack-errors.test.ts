import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { OptionError, UnfinishedPackError } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import {
  BadFileError,
  DiskFullError,
  FileNameError,
  KeyCollisionError,
  LinkLoopError,
  NoImagesError,
  OutputLockedError,
  OutputNotEmptyError,
  type PackOptions,
  pack,
  SourceError,
  TooManyBadError,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { filesIn, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

const PHOTOS = 'examples/photos';

/** Runs a pack in a separate process, with these flags of Node and after this line of shell; prints the error. */
function packInChild(source: string, output: string, options: PackOptions, node: string[] = [], shell = '') {
  const program = tree({
    'pack.mjs': `
      import { pack } from ${JSON.stringify(pathToFileURL('packages/writer/lib/index.js').href)};
      const [source, output, options] = process.argv.slice(2);
      await pack(source, output, JSON.parse(options)).catch((error) => console.log(error.name + ': ' + error.message));`,
  });
  const args = [...node, path.join(program, 'pack.mjs'), source, output, JSON.stringify(options)];
  return spawnSync('bash', ['-c', `${shell} exec "$@"`, 'bash', process.execPath, ...args], {
    encoding: 'utf8',
    timeout: 120_000,
  });
}

/** The pack fails with this error, which contains all of `messages`, and leaves no folder. */
async function refused(
  source: string,
  options: PackOptions,
  kind: new (...args: never[]) => Error,
  ...messages: (string | RegExp)[]
) {
  const output = newFolder();
  const packing = pack(source, output, options);
  for (const message of messages) await expect(packing).rejects.toThrow(message);
  await expect(packing).rejects.toBeInstanceOf(kind);
  expect(existsSync(output)).toBe(false);
}

test('a source that is missing or has no image throws an error, and no folder is created', async () => {
  await refused('nowhere', {}, SourceError, 'nowhere does not exist');
  await refused('package.json', {}, SourceError, 'not a folder');
  await refused(tree({}), {}, NoImagesError, 'no file that can be packed');
  await refused(tree({ 'a.txt': '' }), {}, NoImagesError, 'no image among 1 file that can be packed');
  await refused(PHOTOS, { exclude: ['**'] }, NoImagesError, 'no file that can be packed');
});

test('two files with one key, a name that is not UTF-8 and a link loop are errors that name the files', async () => {
  await refused(tree({ 'IMG.1.jpg': jpeg(1), 'IMG_1.jpg': jpeg(2) }), {}, KeyCollisionError, 'IMG.1.jpg and IMG_1.jpg');
  const latin1 = tree({ 'a.jpg': jpeg(1) });
  writeFileSync(Buffer.concat([Buffer.from(`${latin1}/`), Buffer.from([0xe9]), Buffer.from('.jpg')]), jpeg(2));
  await refused(latin1, {}, FileNameError, '\\xe9.jpg is not UTF-8');
  const loop = tree({ 'a/1.jpg': jpeg(1) });
  symlinkSync('../..', path.join(loop, 'a', 'up'));
  await refused(loop, {}, LinkLoopError, 'a/up leads back');
});

test.each([1, 64])(
  'names that cannot be keys and link loops can be excluded by patterns, with %i concurrent calls',
  async (inFlight) => {
    const source = tree({ 'a/1.jpg': jpeg(1), 'a/new\nline.jpg': jpeg(2), 'a/b\nc/3.jpg': jpeg(3) });
    writeFileSync(Buffer.concat([Buffer.from(`${source}/`), Buffer.from([0xe9]), Buffer.from('.jpg')]), jpeg(4));
    symlinkSync('../..', path.join(source, 'a', 'up'));
    const remedies = [
      [FileNameError, 'is not UTF-8', '?.jpg'],
      [FileNameError, 'line.jpg" contains a line break', '**/new*'],
      [FileNameError, 'b\\nc" contains a line break', '**/b*c/**'],
      [LinkLoopError, 'a/up leads back', 'a/up'],
    ] as const;
    for (const [i, [kind, message]] of remedies.entries()) {
      const others = remedies.filter((_, other) => other !== i).map(([, , pattern]) => pattern);
      await refused(source, { exclude: others, inFlight }, kind, message, 'with "exclude"');
    }
    const exclude = remedies.map(([, , pattern]) => pattern);
    const output = newFolder();
    await pack(source, output, { exclude, inFlight });
    expect((await samplesOf(output)).map(({ key }) => key)).toEqual(['a/1']);
  },
);

test('options that cannot be combined, and classes that a fixed list lacks, are errors', async () => {
  await refused(PHOTOS, { workers: 0 }, OptionError, 'workers');
  await refused(PHOTOS, { classes: ['cat'] }, OptionError, 'which is not in the list of classes');
  await refused(PHOTOS, { classes: ['cat', 'cat'] }, Error, 'repeats the class "cat"');
});

test('a folder that contains any files is left unchanged', async () => {
  const output = tree({ 'notes.txt': 'mine' });
  await expect(pack(PHOTOS, output)).rejects.toThrow('holds notes.txt; pack to another folder, or empty this one');
  await expect(pack(PHOTOS, output)).rejects.toBeInstanceOf(OutputNotEmptyError);
  expect(filesIn(output)).toEqual(['notes.txt']);

  const dataset = newFolder();
  await pack(PHOTOS, dataset);
  await expect(pack(PHOTOS, dataset, { seed: 7 })).rejects.toThrow(
    /already contains a dataset; .*"overwrite".*"append"/,
  );
  expect(await samplesOf(dataset)).toHaveLength(60);
});

test('overwrite accepts no file that pack did not write', async () => {
  const output = tree({ '000000.tar': 'mine' });
  await expect(pack(PHOTOS, output, { overwrite: true })).rejects.toThrow('holds 000000.tar');
  expect(filesIn(output)).toEqual(['000000.tar']);
});

test('a pack without images does not replace the dataset that it should overwrite', async () => {
  const output = newFolder();
  await pack(PHOTOS, output);
  await expect(pack(tree({}), output, { overwrite: true })).rejects.toBeInstanceOf(NoImagesError);
  expect(await samplesOf(output)).toHaveLength(60);
});

test('a second concurrent pack into the same folder is rejected', async () => {
  const output = newFolder();
  const first = pack(PHOTOS, output);
  await expect(pack(PHOTOS, output, { overwrite: true })).rejects.toBeInstanceOf(OutputLockedError);
  await first;
  expect(await samplesOf(output)).toHaveLength(60);
});

test('a bad image ends the pack with its path and reason, and the folder is marked as unfinished', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': 'no image', 'a/3.jpg': jpeg(3) });
  const output = newFolder();
  const packing = pack(source, output, { maxShardSamples: 1, shuffle: false, workers: 1 });
  await expect(packing).rejects.toBeInstanceOf(BadFileError);
  await expect(packing).rejects.toMatchObject({ path: 'a/2.jpg', message: expect.stringContaining('is not an image') });
  expect(filesIn(output)).toEqual([
    ...['000000.parquet', '000000.tar', 'pack.json', 'pack.state/000000.json', 'pack.state/plan'],
  ]);
  await expect(readManifest(output)).rejects.toBeInstanceOf(UnfinishedPackError);
  await expect(pack(source, output)).rejects.toThrow('contains an unfinished pack');
});

test('names that cannot be keys or do not fit a shard are quarantined too, and an append does not list them again', async () => {
  const long = 'k'.repeat(200);
  const source = tree({
    'a/1.jpg': jpeg(1),
    'a/x\ny.jpg': jpeg(2),
    // LMDB keys have up to 511 bytes.
    [`${long}/${long}/${long}/3.jpg`]: jpeg(3),
  });
  writeFileSync(Buffer.concat([Buffer.from(`${source}/a/caf`), Buffer.from([0xe9]), Buffer.from('.jpg')]), jpeg(4));
  const output = newFolder();
  const options = { onBad: 'quarantine', maxBad: 1, format: 'lmdb', workers: 1 } as const;
  expect(await pack(source, output, options)).toMatchObject({ samples: 1, quarantined: 3 });
  const listed = () => readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  const bad = listed().map((line) => JSON.parse(line) as { path: string; reason: string });
  expect(bad.map((one) => one.path)).toEqual(['a/caf\\xe9.jpg', 'a/x\ny.jpg', `${long}/${long}/${long}/3.jpg`]);
  expect(bad[2]!.reason).toContain('604 bytes');
  await pack(source, output, { ...options, append: true });
  expect(listed()).toHaveLength(3);
  await expect(pack(source, newFolder(), { workers: 1 })).rejects.toThrow(
    'list them in quarantine.jsonl, set onBad: "quarantine"',
  );
});

test('quarantine lists the bad files, in the order of the plan, and packs the rest', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': '', 'a/2.txt': 'beside', 'a/4.jpg': jpeg(4) });
  symlinkSync('gone', path.join(source, 'a/3.jpg'));
  const output = newFolder();
  const report = await pack(source, output, { onBad: 'quarantine', maxBad: 0.5, shuffle: false });
  expect(report).toMatchObject({ samples: 2, files: 2, quarantined: 2 });
  expect((await samplesOf(output)).map(({ key }) => key)).toEqual(['a/1', 'a/4']);
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { path: 'a/2.jpg', reason: expect.stringContaining('empty file') },
    { path: 'a/3.jpg', reason: expect.stringContaining('cannot be read: no such file or folder') },
  ]);
});

test('more bad images than allowed end the pack', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': '', 'a/3.jpg': '' });
  const packing = pack(source, newFolder(), { onBad: 'quarantine', maxBad: 0.5 });
  await expect(packing).rejects.toBeInstanceOf(TooManyBadError);
  await expect(packing).rejects.toThrow('2 of 3 images are bad, more than maxBad allows (50 %)');
});

test('the list contains all bad images, also those of shards that had not started when the limit was exceeded', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `a/${String(i).padStart(2, '0')}.jpg`);
  const source = tree(Object.fromEntries(names.map((name, i) => [name, i % 2 === 0 ? 'none' : jpeg(i)])));
  const output = newFolder();
  const options = { onBad: 'quarantine', shuffle: false, maxShardSamples: 1, workers: 1 } as const;
  await expect(pack(source, output, options)).rejects.toThrow(
    '6 of 12 images are bad, more than maxBad allows (1 %). quarantine.jsonl lists all of them. To accept them, raise maxBad. The first: ',
  );
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(names.filter((_, i) => i % 2 === 0));
  expect(readdirSync(output).filter((name) => name.endsWith('.tar'))).toEqual(['000000.tar']);
  expect(await pack(source, output, { ...options, maxBad: 0.5 })).toMatchObject({
    samples: 6,
    quarantined: 6,
    keptShards: 1,
  });
});

test('a file that cannot be read ends the pack before the first shard', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1) });
  symlinkSync('gone', path.join(source, 'a/2.jpg'));
  await refused(source, {}, BadFileError, 'a/2.jpg cannot be read: no such file or folder');
  mkdirSync(path.join(source, 'folder.jpg'));
  await refused(
    source,
    { files: ['a/1.jpg', 'folder.jpg'] },
    BadFileError,
    'folder.jpg cannot be read: it is a folder, not a file',
  );
});

test.each([1, 8])('a class that is a link to a missing disk ends the pack, with %i in flight', async (inFlight) => {
  const source = tree({ 'a/1.jpg': jpeg(1) });
  symlinkSync('/nowhere/b', path.join(source, 'b'));
  await refused(
    source,
    { inFlight, onBad: 'quarantine' },
    SourceError,
    'b leads to /nowhere/b, which cannot be read: no such file or folder',
  );
  await pack(source, newFolder(), { inFlight, exclude: ['b'], workers: 1 });
});

test('a split that is a link to a missing disk ends the pack', async () => {
  const source = tree({ 'val/a/1.jpg': jpeg(1) });
  symlinkSync('/nowhere/train', path.join(source, 'train'));
  await refused(source, { splits: true }, SourceError, 'train is a link to /nowhere/train, which does not exist');
});

test('an image that cannot be decoded is bad if it is encoded again', async () => {
  const half = readFileSync('test/fixtures/odd-images/truncated-half.jpg');
  const packing = pack(tree({ 'a/1.jpg': half }), newFolder(), { resize: 32 });
  await expect(packing).rejects.toThrow(/1\.jpg cannot be fully decoded: .*premature end/);
});

test('two fields that become the same field by their content are an error that names both', async () => {
  const png = readFileSync('test/fixtures/odd-images/palette.png');
  const source = tree({ 'a/1.jpg': png, 'a/1.png': png });
  const packing = pack(source, newFolder(), { fields: ['png'] });
  await expect(packing).rejects.toBeInstanceOf(KeyCollisionError);
  await expect(packing).rejects.toMatchObject({ paths: ['a/1.jpg', 'a/1.png'] });
});

test('too little space on the disk is detected before anything is written', async () => {
  const source = tree({ 'a/1.jpg': '' });
  truncateSync(path.join(source, 'a/1.jpg'), 2 ** 42);
  await refused(source, {}, DiskFullError, /needs 4,398,0\d\d MB/);
});

test('a disk that becomes full ends the pack, and no part of the shard remains', () => {
  const output = newFolder();
  // bash counts in blocks of 1,024 bytes: no shard of ten photos fits.
  const { stdout } = packInChild(PHOTOS, output, { maxShardSamples: 10, workers: 2 }, [], 'ulimit -f 200;');
  expect(stdout).toMatch(/^DiskFullError: The disk of .* is full: the system allows no larger files/);
  expect(filesIn(output)).toEqual(['pack.json', 'pack.state/plan', 'skipped.jsonl']);
});

test('a worker that dies in the middle of a shard ends the pack with its reason, and leaves no partial shard', () => {
  const output = newFolder();
  const preload = pathToFileURL('test/fixtures/pack/dying-worker.mjs').href;
  // Images that are encoded again are packed by threads only.
  const options = { maxShardSamples: 10, workers: 2, resize: 16 } as const;
  for (const halfNote of [undefined, path.join(output, 'pack.state', '000000.json.part')]) {
    // The file of a worker that died while it wrote the record of a shard.
    if (halfNote !== undefined) writeFileSync(halfNote, '');
    const { stdout } = packInChild(PHOTOS, output, options, ['--import', preload]);
    expect(stdout).toMatch(/^WorkerDiedError: .*exit code 9/);
    const left = filesIn(output);
    expect(left).toContain('pack.json');
    expect(left.filter((file) => file.endsWith('.part') || file === 'dataset.json' || file === 'pack.lock')).toEqual(
      [],
    );
  }
});

test('an aborted pack ends with the reason, and can be replaced', async () => {
  const reason = new Error('the user went home');
  await expect(pack(PHOTOS, newFolder(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);

  const output = newFolder();
  const controller = new AbortController();
  const packing = pack(PHOTOS, output, {
    imageFormat: 'png',
    workers: 1,
    signal: controller.signal,
    onProgress: ({ stage }) => stage === 'pack' && controller.abort(reason),
  });
  await expect(packing).rejects.toBe(reason);
  expect(filesIn(output)).toEqual(['pack.json', 'pack.state/plan', 'skipped.jsonl']);
  await pack(PHOTOS, output, { overwrite: true });
  expect(await samplesOf(output)).toHaveLength(60);
});
