import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newToken, OptionError, temporaryName, UnfinishedPackError } from '@shardtool/base';
import {
  BadFileError,
  commitParts,
  OutputLockedError,
  OutputNotEmptyError,
  type PackOptions,
  type PartOf,
  PartsMissingError,
  PlanChangedError,
  pack,
  TooManyBadError,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { shardtoolWith } from './cli-process.js';
import { smallImages } from './datasets.js';
import { packInProcess, startPack } from './pack-processes.js';
import { digestsOf, filesIn, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of parts');

/** Number of processes that pack concurrently. Each takes a quarter of a second of CPU time. */
const PROCESSES = TIMES === 1 ? 4 : 16;
/** Number of rounds with concurrent and killed processes; each takes some seconds. */
const ROUNDS = TIMES;
/** Number of kills of each part in a round. */
const KILLS_OF_A_PART = TIMES === 1 ? 1 : 2;

const OPTIONS: PackOptions = { maxShardSamples: 2, workers: 1 };

async function packedAlone(source: string, options: PackOptions = OPTIONS): Promise<Record<string, string>> {
  const output = newFolder();
  await pack(source, output, options);
  return digestsOf(output);
}

function parts(count: number): PartOf[] {
  return Array.from({ length: count }, (_, index) => ({ index, of: count }));
}

test(`${PROCESSES} processes that pack parts concurrently give the same result as one, and one of them commits`, {
  timeout: 180_000 + ROUNDS * 60_000,
}, async () => {
  const source = await smallImages({ samples: 70, classes: 2 });
  const expected = await packedAlone(source);
  for (let round = 0; round < ROUNDS; round++) {
    const output = newFolder();
    const ended = await Promise.all(
      parts(PROCESSES).map((part) => packInProcess(source, output, { ...OPTIONS, part })),
    );
    expect(ended.map(({ code, stdout }) => (code === 0 ? '' : stdout)).filter((fault) => fault !== '')).toEqual([]);
    const reports = ended.map(({ stdout }) => JSON.parse(stdout));
    expect(reports.some(({ isCommitted }) => isCommitted)).toBe(true);
    expect(reports.reduce((sum, { samples }) => sum + samples, 0)).toBe(70);
    expect(digestsOf(output)).toEqual(expected);
  }
});

test('parts in one process can race for the plan and the commit without harm', async () => {
  const source = await smallImages({ samples: 24, classes: 2 });
  const expected = await packedAlone(source);
  for (let round = 0; round < 2 * TIMES; round++) {
    const output = newFolder();
    const reports = await Promise.all(parts(6).map((part) => pack(source, output, { ...OPTIONS, part })));
    expect(reports.some(({ isCommitted }) => isCommitted)).toBe(true);
    expect(digestsOf(output)).toEqual(expected);
  }
});

test('parts that run one after the other report how much is left, and the last one commits', async () => {
  const source = await smallImages({ samples: 10 });
  const output = newFolder();
  const reports = [];
  for (const part of parts(3)) reports.push(await pack(source, output, { ...OPTIONS, part }));
  expect(reports.map(({ shards, pendingShards, isCommitted }) => [shards, pendingShards, isCommitted])).toEqual([
    [2, 3, false],
    [2, 1, false],
    [1, 0, true],
  ]);
  expect(digestsOf(output)).toEqual(await packedAlone(source));
});

test('if there are more parts than shards, some parts have nothing to do', async () => {
  const source = await smallImages({ samples: 4 });
  const output = newFolder();
  for (const part of parts(4).reverse()) await pack(source, output, { ...OPTIONS, part });
  expect(digestsOf(output)).toEqual(await packedAlone(source));
});

test('part 1/1 packs everything', async () => {
  const source = await smallImages({ samples: 4 });
  const output = newFolder();
  expect(await pack(source, output, { ...OPTIONS, part: { index: 0, of: 1 } })).toMatchObject({
    isCommitted: true,
    shards: 2,
  });
});

test('a full pack can finish what parts began, and the other way round', async () => {
  const source = await smallImages({ samples: 12 });
  const expected = await packedAlone(source);
  const output = newFolder();
  await pack(source, output, { ...OPTIONS, part: { index: 1, of: 3 } });
  expect(await pack(source, output, OPTIONS)).toMatchObject({ keptShards: 2, shards: 6 });
  expect(digestsOf(output)).toEqual(expected);

  const other = newFolder();
  await pack(source, other, { ...OPTIONS, part: { index: 1, of: 3 } });
  for (const part of parts(2)) await pack(source, other, { ...OPTIONS, part });
  expect(digestsOf(other)).toEqual(expected);
});

test('parts that are killed keep their finished shards, and resume when they are started again', async () => {
  const source = await smallImages({ samples: 60, bytes: () => 20_000 });
  const options = { ...OPTIONS, resize: 64 };
  const expected = await packedAlone(source, options);
  for (let round = 0; round < ROUNDS; round++) {
    const output = newFolder();
    for (let kills = 0; kills < 2 * KILLS_OF_A_PART; kills++) {
      const part = parts(2)[kills % 2]!;
      const child = startPack(source, output, { ...options, part });
      await sleep(150 + random() * 500);
      child.process.kill('SIGKILL');
      await child.ended;
    }
    for (const part of parts(2)) await pack(source, output, { ...options, part });
    expect(digestsOf(output)).toEqual(expected);
  }
});

/** The content of a lock whose holder was killed: a process of this machine has its process id, but started at another time. */
const KILLED = newToken().replace(/^(\d+)-\d+/, '$1-1');
const OF_KILLED = JSON.stringify({ pid: process.pid, host: hostname(), token: KILLED });

test.each([
  ['the other part', { part: { index: 1, of: 2 } }],
  ['a full pack', {}],
])('lock files of killed parts are removed when %s finishes', async (_, options) => {
  const source = await smallImages({ samples: 6 });
  const output = newFolder();
  await pack(source, output, { ...OPTIONS, part: { index: 0, of: 2 } });
  // One was killed right after its plan was renamed, the other between its last shard and its end.
  const locks = ['pack.plan.lock', 'pack.1-of-2.lock', temporaryName('pack.1-of-2.lock', KILLED)];
  for (const lock of locks) writeFileSync(path.join(output, lock), OF_KILLED);
  await pack(source, output, { ...OPTIONS, ...options });
  expect(digestsOf(output)).toEqual(await packedAlone(source));
});

test('the lock of a part that was killed right after its commit is removed with its other files', async () => {
  const source = await smallImages({ samples: 6 });
  const output = newFolder();
  for (const part of parts(2)) await pack(source, output, { ...OPTIONS, part });
  writeFileSync(path.join(output, 'pack.commit.lock'), OF_KILLED);
  await pack(source, output, { ...OPTIONS, part: { index: 1, of: 2 } });
  expect(digestsOf(output)).toEqual(await packedAlone(source));
});

test('a part that finds a plan with other options is rejected, and the error names the options', async () => {
  const source = await smallImages({ samples: 6 });
  const output = newFolder();
  await pack(source, output, { ...OPTIONS, part: { index: 0, of: 2 } });
  const other = pack(source, output, { ...OPTIONS, seed: 5, part: { index: 1, of: 2 } });
  await expect(other).rejects.toBeInstanceOf(PlanChangedError);
  await expect(other).rejects.toThrow('its seed was 0 and is now 5');
  for (const clears of ['overwrite', 'restart'] as const) {
    const clearing = pack(source, output, { ...OPTIONS, part: { index: 1, of: 2 }, [clears]: true });
    await expect(clearing).rejects.toThrow(`"${clears}" cannot be combined with "part"`);
    await expect(clearing).rejects.toBeInstanceOf(OptionError);
  }
});

test.each<[string, (file: string) => void]>([
  ['another size', (file) => writeFileSync(file, jpeg('another'))],
  ['another time', (file) => utimesSync(file, 0, 946684800)],
  ['gone', (file) => rmSync(file)],
])('a file that has changed since another part planned is bad: %s', async (_, change) => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2), 'a/3.jpg': jpeg(3) });
  const options = { maxShardSamples: 1, shuffle: false, workers: 1 };
  const output = newFolder();
  await pack(source, output, { ...options, part: { index: 0, of: 2 } });
  change(path.join(source, 'a/2.jpg'));
  const second = { ...options, part: { index: 1, of: 2 } };
  const packing = pack(source, output, second);
  await expect(packing).rejects.toBeInstanceOf(BadFileError);
  await expect(packing).rejects.toThrow('2.jpg');
  const tooMany = pack(source, output, { ...second, onBad: 'quarantine' });
  await expect(tooMany).rejects.toBeInstanceOf(TooManyBadError);
  const report = await pack(source, output, { ...second, onBad: 'quarantine', maxBad: 0.5 });
  expect(report).toMatchObject({ quarantined: 1, isCommitted: true });
  expect((await samplesOf(output)).map(({ key }) => key)).toEqual(['a/1', 'a/3']);
});

test('bad images of all parts together count for --max-bad at the commit', async () => {
  const bad = ['a/2.jpg', 'a/4.jpg'];
  // The last has the key of the first, which the plan detects already.
  const names = ['a/1.jpg', 'a/2.jpg', 'a/3.jpg', 'a/4.jpg', 'a/1.jpeg'];
  const source = tree(Object.fromEntries(names.map((name) => [name, bad.includes(name) ? 'none' : jpeg(name)])));
  const options: PackOptions = { maxShardSamples: 1, shuffle: false, workers: 1, onBad: 'quarantine', maxBad: 0.5 };
  const output = newFolder();
  for (const index of [0, 1, 2]) await pack(source, output, { ...options, part: { index, of: 4 } });
  await expect(pack(source, output, { ...options, part: { index: 3, of: 4 } })).rejects.toBeInstanceOf(TooManyBadError);
  expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
  await expect(commitParts(output)).rejects.toThrow('3 of 5 images are bad, more than maxBad allows (1 %)');
  expect(await commitParts(output, { maxBad: 0.7 })).toMatchObject({ samples: 2, quarantined: 3, wasCommitted: false });
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(['a/1.jpg', ...bad]);
});

test('commit rejects missing shards, and a folder without a started pack', async () => {
  const source = await smallImages({ samples: 10 });
  const output = newFolder();
  await pack(source, output, { ...OPTIONS, part: { index: 0, of: 2 } });
  await expect(commitParts(output)).rejects.toBeInstanceOf(PartsMissingError);
  await expect(commitParts(output)).rejects.toThrow('2 of the 5 shards of');
  await expect(commitParts(output)).rejects.toThrow('(000001, 000003)');
  await expect(commitParts(tree({}))).rejects.toBeInstanceOf(UnfinishedPackError);
  await pack(source, output, { ...OPTIONS, part: { index: 1, of: 2 } });
  expect(await commitParts(output)).toMatchObject({ samples: 10, shards: 5, wasCommitted: true });
});

test('a part that is run again after the commit does nothing, and is rejected if the dataset has other files', async () => {
  const source = await smallImages({ samples: 6 });
  const output = newFolder();
  for (const part of parts(2)) await pack(source, output, { ...OPTIONS, part });
  const before = digestsOf(output);
  expect(await pack(source, output, { ...OPTIONS, part: { index: 0, of: 2 } })).toMatchObject({
    isCommitted: true,
    shards: 0,
  });
  const other = await smallImages({ samples: 7 });
  await expect(pack(other, output, { ...OPTIONS, part: { index: 0, of: 2 } })).rejects.toBeInstanceOf(
    OutputNotEmptyError,
  );
  expect(digestsOf(output)).toEqual(before);
});

test('parts and a full pack exclude each other, and so do parts of different totals', async () => {
  const source = await smallImages({ samples: 6 });
  const slow = { ...OPTIONS, resize: 8 };
  const output = newFolder();
  const first = pack(source, output, { ...slow, part: { index: 0, of: 2 } });
  await isThere(path.join(output, 'pack.1-of-2.lock'));
  await expect(pack(source, output, slow)).rejects.toBeInstanceOf(OutputLockedError);
  await expect(pack(source, output, { ...slow, part: { index: 2, of: 3 } })).rejects.toThrow('Another process');
  await expect(pack(source, output, { ...slow, part: { index: 0, of: 2 } })).rejects.toBeInstanceOf(OutputLockedError);
  await Promise.all([first, pack(source, output, { ...slow, part: { index: 1, of: 2 } })]);

  const whole = newFolder();
  const packing = pack(source, whole, slow);
  await isThere(path.join(whole, 'pack.lock'));
  await expect(pack(source, whole, { ...slow, part: { index: 0, of: 2 } })).rejects.toBeInstanceOf(OutputLockedError);
  await expect(commitParts(whole)).rejects.toBeInstanceOf(OutputLockedError);
  await packing;
});

/** Resolves when the file exists. */
async function isThere(file: string): Promise<void> {
  while (!existsSync(file)) await sleep(1);
}

test('the lock of a part on another machine is taken over when it has not been renewed for two minutes', async () => {
  const source = await smallImages({ samples: 4 });
  const output = tree({ 'pack.1-of-2.lock': JSON.stringify({ pid: 1, host: `not-${hostname()}`, started: null }) });
  const lock = path.join(output, 'pack.1-of-2.lock');
  const past = statSync(lock).mtimeMs / 1000 - 125;
  utimesSync(lock, past, past);
  for (const part of parts(2)) await pack(source, output, { ...OPTIONS, part });
  expect(digestsOf(output)).toEqual(await packedAlone(source));
});

test('tasks of a Slurm job array and of an Indexed Job find their part without the option', async () => {
  const source = await smallImages({ samples: 8 });
  const output = newFolder();
  const slurm = { SLURM_ARRAY_TASK_ID: '5', SLURM_ARRAY_TASK_COUNT: '2', SLURM_ARRAY_TASK_MIN: '5' };
  const first = await shardtoolWith(slurm, 'pack', source, output, '--max-shard-samples', '2');
  expect(first).toMatchObject({
    code: 0,
    stderr: 'Part 1/2, from SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT; --part 1/1 packs everything.\n',
    stdout: expect.stringContaining('  part 1/2: 2 shards of other parts are not finished yet\n'),
  });
  const early = await shardtool('commit', output);
  expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining('2 of the 4 shards') });
  const indexed = { JOB_COMPLETION_INDEX: '1', JOB_COMPLETIONS: '2' };
  const second = await shardtoolWith(indexed, 'pack', source, output, '--max-shard-samples', '2', '--quiet');
  expect(second).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(filesIn(output)).toContain('dataset.json');
  expect(await shardtool('commit', output)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/ was committed already: 8 samples in 4 shards /),
  });
});

test('--part auto packs the part of this process, and so does part: { index, of }', async () => {
  const source = await smallImages({ samples: 8 });
  const output = newFolder();
  const args = ['pack', source, output, '--max-shard-samples', '2', '--part', 'auto'];
  const first = await shardtoolWith({ OMPI_COMM_WORLD_RANK: '1', OMPI_COMM_WORLD_SIZE: '2' }, ...args);
  expect(first).toMatchObject({
    code: 0,
    stderr: 'Part 2/2, from OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE; --part 1/1 packs everything.\n',
    stdout: expect.stringContaining('  part 2/2: 2 shards of other parts are not finished yet\n'),
  });
  const nowhere = await shardtool(...args);
  expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('no environment variable defines a part') });
  const options = { maxShardSamples: 2, part: { index: 0, of: 2 } };
  expect(await pack(source, output, options)).toMatchObject({ isCommitted: true });
  const alone = newFolder();
  await pack(source, alone, { maxShardSamples: 2 });
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});
