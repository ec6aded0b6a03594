import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { newToken, temporaryName, UnfinishedPackError } from '@shardtool/base';
import { openDataset } from '@shardtool/reader';
import {
  BadFileError,
  DiskFullError,
  OutputLockedError,
  type PackOptions,
  PlanChangedError,
  PlanRecordError,
  pack,
  TooManyBadError,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-process.js';
import { smallImages } from './datasets.js';
import { packInProcess } from './pack-processes.js';
import { digestsOf, filesIn, jpeg, newFolder, samplesOf, smallDisk, tree } from './pack-workbench.js';

/** Shards of one sample in the order of the paths; the fourth file is not an image, and the pack stops there. */
const OPTIONS: PackOptions = { maxShardSamples: 1, shuffle: false, workers: 1 };
const GO_ON: PackOptions = { ...OPTIONS, onBad: 'quarantine', maxBad: 0.5 };

function source(): string {
  return tree({
    'a/1.jpg': jpeg(1),
    'a/2.jpg': jpeg(2),
    'a/3.jpg': jpeg(3),
    'b/4.jpg': 'no image',
    'b/5.jpg': jpeg(5),
    'b/6.jpg': jpeg(6),
  });
}

/** A folder in which the first three shards are finished. */
async function stopped(images: string, options: PackOptions = {}): Promise<string> {
  const output = newFolder();
  await expect(pack(images, output, { ...OPTIONS, ...options })).rejects.toBeInstanceOf(BadFileError);
  expect(filesIn(output).filter((file) => file.endsWith('.tar'))).toHaveLength(3);
  return output;
}

test('a pack that was stopped resumes: finished shards are kept, and the bytes equal those of an uninterrupted pack', async () => {
  const images = source();
  const output = await stopped(images);
  const finished = statSync(path.join(output, '000002.tar')).ino;
  const report = await pack(images, output, GO_ON);
  expect(report).toMatchObject({ samples: 5, files: 5, quarantined: 1, shards: 6, keptShards: 3, isCommitted: true });
  expect(statSync(path.join(output, '000002.tar')).ino).toBe(finished);
  const alone = newFolder();
  expect(await pack(images, alone, GO_ON)).toEqual({ ...report, keptShards: 0 });
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});

test('earlier quarantined files count for --max-bad, stay in the list, and end a pack that stops at bad files', async () => {
  const images = source();
  writeFileSync(path.join(images, 'b/5.jpg'), 'no image either');
  const output = newFolder();
  const tooMany = { ...GO_ON, maxBad: 0.2 };
  await expect(pack(images, output, tooMany)).rejects.toBeInstanceOf(TooManyBadError);
  await expect(pack(images, output, tooMany)).rejects.toBeInstanceOf(TooManyBadError);
  await expect(pack(images, output, OPTIONS)).rejects.toThrow(/4\.jpg is not an image/);
  await pack(images, output, GO_ON);
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(['b/4.jpg', 'b/5.jpg']);
});

test.each<[string, (images: string) => void, RegExp]>([
  ['a new file', (images) => writeFileSync(path.join(images, 'a/0.jpg'), jpeg(0)), /a\/0\.jpg is new;/],
  ['a missing file', (images) => rmSync(path.join(images, 'b/6.jpg')), /b\/6\.jpg is gone;/],
  [
    'a file with another size',
    (images) => writeFileSync(path.join(images, 'a/2.jpg'), jpeg('longer')),
    /a\/2\.jpg had \d+ bytes and now has \d+ bytes;/,
  ],
  [
    'a file with another time',
    (images) => utimesSync(path.join(images, 'a/2.jpg'), 0, 946684800),
    /a\/2\.jpg has the modification time 2000-01-01T00:00:00\.000Z instead of 20\d\d-.*;/,
  ],
  [
    'several files',
    (images) => {
      writeFileSync(path.join(images, 'a/1.json'), '{}');
      rmSync(path.join(images, 'b/5.jpg'));
    },
    /a\/1\.json is new \(1 more file has changed\);/,
  ],
])('%s ends a pack that would resume, and the error names it', async (_, change, message) => {
  const images = source();
  const output = await stopped(images);
  change(images);
  const before = digestsOf(output);
  const packing = pack(images, output, GO_ON);
  await expect(packing).rejects.toBeInstanceOf(PlanChangedError);
  await expect(packing).rejects.toThrow(message);
  await expect(packing).rejects.toThrow('with "restart"');
  expect(digestsOf(output)).toEqual(before);
  const report = await pack(images, output, { ...GO_ON, restart: true });
  expect(report.keptShards).toBe(0);
  const alone = newFolder();
  await pack(images, alone, GO_ON);
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});

/** An interrupted pack for several tests. A pack that refuses to resume does not change it. */
let left: Promise<{ readonly images: string; readonly output: string }> | undefined;
const interruptedPack = async (images = source()) => ({ images, output: await stopped(images) });

test.each<[PackOptions, string]>([
  [{ maxShardSamples: 2 }, 'its maxShardSamples was 1 and is now 2'],
  [{ maxShardSamples: undefined }, 'its maxShardSamples was 1 and is now unlimited'],
  [{ seed: 7, name: 'train' }, 'its name was "" and is now train, and its seed was 0 and is now 7'],
  [{ format: 'msgpack' }, 'its format was tar and is now msgpack'],
  [{ resize: 16 }, 'its resize was not set and is now 16'],
  [{ exclude: ['x/**'] }, 'its exclude was [] and is now ["x/**"]'],
  [{ classes: ['b', 'a'] }, 'its classes were a, b and are now b, a'],
])('changed options end a pack that would resume, and the error names them: %j', async (options, message) => {
  left ??= interruptedPack();
  const { images, output } = await left;
  const packing = pack(images, output, { ...GO_ON, ...options });
  await expect(packing).rejects.toBeInstanceOf(PlanChangedError);
  await expect(packing).rejects.toThrow(message);
});

test('changed labels end a pack that would resume', async () => {
  const images = source();
  const labels = path.join(tree({ 'labels.csv': 'path,class\na/1.jpg,x\nb/4.jpg,y\n' }), 'labels.csv');
  const output = newFolder();
  await expect(pack(images, output, { ...OPTIONS, labels })).rejects.toBeInstanceOf(BadFileError);
  writeFileSync(labels, 'path,class\na/1.jpg,y\nb/4.jpg,y\n');
  await expect(pack(images, output, { ...GO_ON, labels })).rejects.toThrow('its labels have changed since');
});

test('a pack resumes with another number of workers, and from a source that was moved unchanged', async () => {
  const images = source();
  const output = await stopped(images);
  const moved = tree({});
  for (const file of filesIn(images)) {
    const { atimeMs, mtimeMs } = statSync(path.join(images, file));
    mkdirSync(path.dirname(path.join(moved, file)), { recursive: true });
    copyFileSync(path.join(images, file), path.join(moved, file));
    utimesSync(path.join(moved, file), atimeMs / 1000, mtimeMs / 1000);
    utimesSync(path.join(images, file), atimeMs / 1000, mtimeMs / 1000);
  }
  await expect(pack(images, output, { ...GO_ON, restart: true, onBad: 'raise' })).rejects.toBeInstanceOf(BadFileError);
  expect(await pack(moved, output, { ...GO_ON, workers: 2 })).toMatchObject({ keptShards: 3, samples: 5 });
});

test.each<[string, (output: string) => void]>([
  ['a truncated shard', (output) => truncateSync(path.join(output, '000001.tar'), 512)],
  ['a missing shard', (output) => rmSync(path.join(output, '000001.tar'))],
  ['a damaged index', (output) => damage(path.join(output, '000001.parquet'))],
  ['a missing index', (output) => rmSync(path.join(output, '000001.parquet'))],
  [
    'the index of another shard',
    (output) => copyFileSync(path.join(output, '000000.parquet'), path.join(output, '000001.parquet')),
  ],
  ['a damaged record', (output) => damage(path.join(output, 'pack.state/000001.json'))],
  ['a missing record', (output) => rmSync(path.join(output, 'pack.state/000001.json'))],
])('if a pack left %s, it packs that shard again', async (_, change) => {
  const images = source();
  const output = await stopped(images);
  change(output);
  expect(await pack(images, output, GO_ON)).toMatchObject({ keptShards: 2 });
  expect((await samplesOf(output)).map(({ key }) => key)).toEqual(['a/1', 'a/2', 'a/3', 'b/5', 'b/6']);
});

test('recheck reads finished shards again, and packs those with a changed byte again', async () => {
  const images = source();
  const output = await stopped(images);
  damage(path.join(output, '000001.tar'));
  expect(await pack(images, output, { ...GO_ON, recheck: true })).toMatchObject({ keptShards: 2 });
  expect(await samplesOf(output)).toHaveLength(5);
});

test('a damaged plan is rejected, and restart starts again', async () => {
  const images = source();
  const output = await stopped(images);
  truncateSync(path.join(output, 'pack.state/plan'), 700);
  await expect(pack(images, output, GO_ON)).rejects.toBeInstanceOf(PlanRecordError);
  expect(await pack(images, output, { ...GO_ON, restart: true })).toMatchObject({ keptShards: 0, samples: 5 });
});

test('shards without their plan are rejected, and restart replaces them, but not a dataset', async () => {
  const images = source();
  const output = await stopped(images);
  rmSync(path.join(output, 'pack.state'), { recursive: true });
  await expect(pack(images, output, GO_ON)).rejects.toThrow('contains an unfinished pack');
  await pack(images, output, { ...GO_ON, restart: true });
  expect(await pack(images, output, { ...GO_ON, restart: true })).toMatchObject({ wasCommitted: true });
  expect(await samplesOf(output)).toHaveLength(5);
});

test('a folder in which a pack was killed before its plan was complete counts as empty', async () => {
  const images = source();
  const output = tree({ 'pack.json.part': '{', 'pack.state/plan.1234': 'shardtool' });
  await pack(images, output, GO_ON);
  const alone = newFolder();
  await pack(images, alone, GO_ON);
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});

test('the folder of an unfinished pack cannot be opened, and a file of the user in it is kept', async () => {
  const images = source();
  const output = await stopped(images);
  writeFileSync(path.join(output, 'notes.txt'), 'mine');
  await expect(openDataset(output)).rejects.toBeInstanceOf(UnfinishedPackError);
  await pack(images, output, GO_ON);
  expect(readFileSync(path.join(output, 'notes.txt'), 'utf8')).toBe('mine');
  expect(filesIn(output).filter((file) => file.startsWith('pack.'))).toEqual(['pack.json']);
});

test('a pack that found the disk full resumes when there is space', async () => {
  const images = await smallImages({ samples: 40, bytes: (sample) => (sample < 20 ? 2000 : 40_000) });
  const options = { maxShardSamples: 10, shuffle: false, workers: 1 };
  const output = newFolder();
  // bash counts in blocks of 1,024 bytes: the first two shards fit.
  const { stdout } = await packInProcess(images, output, options, 'ulimit -f 100;');
  expect(stdout).toMatch(/^DiskFullError: The disk of .* is full: the system allows no larger files/);
  expect(filesIn(output).filter((file) => file.endsWith('.part'))).toEqual([]);
  expect(await pack(images, output, options)).toMatchObject({ keptShards: 2, samples: 40 });
});

test('a pack that filled a small disk resumes when there is space', async () => {
  const images = await smallImages({ samples: 40, bytes: () => 10_000 });
  const options = { maxShardSamples: 5, workers: 1, imageFormat: 'png' as const };
  const alone = newFolder();
  await pack(images, alone, options);
  const { folder, isMounted, resize, unmount } = smallDisk(60);
  const output = path.join(folder, 'shards');
  try {
    if (isMounted) {
      await expect(pack(images, output, options)).rejects.toBeInstanceOf(DiskFullError);
      expect(filesIn(output).filter((file) => file.endsWith('.part'))).toEqual([]);
      resize(20_000);
    }
    expect((await pack(images, output, options)).samples).toBe(40);
    expect(digestsOf(output)).toEqual(digestsOf(alone));
  } finally {
    unmount();
  }
});

/** Flips a bit in the middle of a file. */
function damage(file: string): void {
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(file, bytes);
}

test.each<[string, (file: string) => void, string]>([
  ['removed', (file) => rmSync(file), 'cannot be read: no such file or folder'],
  ['truncated', (file) => truncateSync(file, 100), 'has changed since the pack began'],
  ['replaced by a folder', replaceByFolder, 'cannot be read: it is a folder, not a file'],
])('a file that is %s while the pack runs ends the pack, or is quarantined', async (_, change, reason) => {
  for (const onBad of ['raise', 'quarantine'] as const) {
    const images = await smallImages({ samples: 60 });
    const victim = path.join(images, 'a/0059.jpg');
    const output = newFolder();
    let isChanged = false;
    const packing = pack(images, output, {
      ...{ shuffle: false, workers: 1, maxShardSamples: 10, onBad, maxBad: 0.5 },
      // Encoding the images takes longer than the interval of reports.
      ...{ imageFormat: 'png' as const, resize: 512 },
      onProgress: ({ stage, files }) => {
        if (stage !== 'pack' || isChanged || files > 50) return;
        isChanged = true;
        change(victim);
      },
    });
    if (onBad === 'raise') await expect(packing).rejects.toThrow(`${victim} ${reason}`);
    else expect(await packing).toMatchObject({ samples: 59, quarantined: 1 });
    expect(isChanged).toBe(true);
  }
});

function replaceByFolder(file: string): void {
  rmSync(file);
  mkdirSync(file);
}

/** The token of a process in another container, which may have ended. */
const ELSEWHERE = newToken().replace(/^(\d+)-(\d+)-[^-]+/, '$1-$2-00000000');

test('files of a pack that was killed in another container are removed when the next one ends', async () => {
  const images = source();
  const output = await stopped(images);
  const left = ['000001.tar', '000004.tar', '000004.parquet', 'dataset.json', 'pack.state/000004.json'];
  for (const file of left) writeFileSync(path.join(output, temporaryName(file, ELSEWHERE)), 'half');
  writeFileSync(path.join(output, '000005.tar.part'), 'half, by an earlier version');
  await pack(images, output, GO_ON);
  const alone = newFolder();
  await pack(images, alone, GO_ON);
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});

test('a pack whose lock was taken over ends without a dataset, and keeps the lock of the other pack', async () => {
  const images = await smallImages({ samples: 40 });
  const output = newFolder();
  const lock = path.join(output, 'pack.lock');
  const taken = JSON.stringify({ pid: 7, host: 'elsewhere', token: ELSEWHERE });
  let tokens: string[] = [];
  let hasEnded = false;
  const packing = pack(images, output, { workers: 1, maxShardSamples: 5, imageFormat: 'png', resize: 512 });
  packing.then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  );
  // The lock is taken over as soon as a shard is being written; seven more follow.
  while (!hasEnded && tokens.length === 0) {
    // No other process writes files with such names.
    const files = existsSync(output) ? readdirSync(output) : [];
    tokens = files.flatMap((file) => /\.tar\.(.+)\.part$/.exec(file)?.[1] ?? []);
    if (tokens.length === 0) await setImmediate();
  }
  const { token } = JSON.parse(readFileSync(lock, 'utf8')) as { token: string };
  expect(new Set(tokens)).toEqual(new Set([token]));
  writeFileSync(lock, taken);
  await expect(packing).rejects.toBeInstanceOf(OutputLockedError);
  expect(tokens).not.toEqual([]);
  expect(readFileSync(lock, 'utf8')).toBe(taken);
  const left = filesIn(output);
  expect(left).not.toContain('dataset.json');
  expect(left.filter((file) => file.endsWith('.part'))).toEqual([]);
  // The unfinished shard does not get its final name.
  expect(left.filter((file) => file.endsWith('.tar')).length).toBeLessThan(8);
});

test('a pack reports immediately that it waits for a process in another container, and is rejected if that is alive', async () => {
  const text = JSON.stringify({ pid: 7, host: 'elsewhere', token: ELSEWHERE });
  const output = tree({ 'pack.lock': text });
  const lock = path.join(output, 'pack.lock');
  const beat = setInterval(() => writeFileSync(lock, text), 50);
  const { code, stderr } = await shardtool('pack', source(), output);
  clearInterval(beat);
  expect(code).toBe(1);
  expect(stderr).toContain(`Waiting for process 7 on elsewhere, which holds ${lock}`);
  expect(stderr).toContain(
    `Another process is writing to this dataset and holds ${lock}: process 7 on elsewhere; wait for it`,
  );
});

test('a pack that was killed after it had listed skipped files, but before its plan, starts again', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2), 'a/notes.svg': '<svg/>' });
  const [whole, killed] = [newFolder(), newFolder()];
  await pack(source, whole, { workers: 1 });
  mkdirSync(killed);
  for (const file of ['pack.json', 'skipped.jsonl']) copyFileSync(path.join(whole, file), path.join(killed, file));
  // Files of an earlier version, and of a process in a container that has ended.
  for (const left of ['skipped.jsonl.part', temporaryName('pack.json', ELSEWHERE)]) {
    copyFileSync(path.join(whole, 'skipped.jsonl'), path.join(killed, left));
  }
  await pack(source, killed, { workers: 1 });
  expect(digestsOf(killed)).toEqual(digestsOf(whole));
});
