import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import {
  commitParts,
  type NewSample,
  type PackOptions,
  PartFinishedError,
  PlanChangedError,
  pack,
  verify,
  Writer,
  type WriterOptions,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { defaultBucketServer } from './bucket-server.js';
import { emptyFolder, smallImages } from './datasets.js';
import { digestsOf, filesIn, jpeg, newFolder, samplesOf } from './pack-workbench.js';

const OPTIONS: WriterOptions = { maxShardSamples: 2, classes: ['cat', 'dog'], columns: { score: 'double' } };

/** The samples of part `number` of 4: as many as its number. */
const given = (number: number): NewSample[] =>
  Array.from({ length: number }, (_, i) => ({
    ...{ key: `p${number}/${i}`, jpg: jpeg(number * 10 + i), label: i % 2, columns: { score: i / 2 } },
  }));

async function write(output: string, number: number, options: WriterOptions = {}, samples = given(number)) {
  const writer = new Writer(output, { ...OPTIONS, ...options, part: { index: number - 1, of: 4 } });
  for (const sample of samples) await writer.add(sample);
  return writer.close();
}

async function writeAll(output: string, order: readonly number[], options: WriterOptions = {}) {
  const reports = [];
  for (const number of order) reports.push(await write(output, number, options));
  return reports;
}

const keysOf = async (output: string) => (await samplesOf(output)).map(({ key }) => key);

test.each(['tar', 'msgpack', 'lmdb'] as const)(
  '%s: parts in any order, or in parallel, make the same dataset, and the last one commits',
  async (format) => {
    const [one, two, three] = [newFolder(), newFolder(), newFolder()];
    const reports = await writeAll(one, [3, 1, 4, 2], { format });
    expect(reports.map(({ samples, isCommitted, pendingParts }) => [samples, isCommitted, pendingParts])).toEqual([
      [3, false, ['1/4', '2/4', '4/4']],
      [1, false, ['2/4', '4/4']],
      [4, false, ['2/4']],
      [2, true, []],
    ]);
    expect(await keysOf(one)).toEqual([1, 2, 3, 4].flatMap((number) => given(number).map(({ key }) => key)));
    expect((await verify(one)).faults).toBe(0);
    await using dataset = await openDataset(one);
    expect(dataset.classes).toEqual(['cat', 'dog']);
    await writeAll(two, [1, 2, 3, 4], { format });
    await Promise.all([1, 2, 3, 4].map((number) => write(three, number, { format })));
    expect(digestsOf(two)).toEqual(digestsOf(one));
    expect(digestsOf(three)).toEqual(digestsOf(one));
  },
);

test('shards are named by the part that wrote them, and have the requested indexes', async () => {
  const output = newFolder();
  await writeAll(output, [1, 2, 3, 4], { name: 'train', index: ['wids', 'dali'] });
  const shards = filesIn(output).filter((file) => file.endsWith('.tar'));
  expect(shards[0]).toBe('train-1-of-4-000000.tar');
  expect(shards.at(-1)).toBe('train-4-of-4-000001.tar');
  expect(JSON.parse(readFileSync(path.join(output, 'shardindex.json'), 'utf8')).shardlist).toHaveLength(shards.length);
  expect(filesIn(output)).toContain('train-4-of-4-000001.idx');
});

test('a part may have no samples, but not all parts', async () => {
  const output = newFolder();
  await writeAll(output, [1, 2, 3]);
  expect(await write(output, 4, {}, [])).toMatchObject({ samples: 0, isCommitted: true });
  expect(await keysOf(output)).toHaveLength(6);
  const empty = newFolder();
  for (const number of [1, 2, 3]) await write(empty, number, {}, []);
  await expect(write(empty, 4, {}, [])).rejects.toThrow('by any of its 4 parts');
});

test('part 1/1 is the whole dataset', async () => {
  const output = newFolder();
  const writer = new Writer(output, { part: { index: 0, of: 1 } });
  await writer.add({ key: 'a', jpg: jpeg(1) });
  expect(await writer.close()).toMatchObject({ isCommitted: true });
  expect(filesIn(output)).toContain('000000.tar');
});

test('a part that was killed or aborted is reported as missing, and starts again', async () => {
  const output = newFolder();
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { Writer } from '@shardtool/writer';
      const writer = new Writer(process.argv[1], ${JSON.stringify({ ...OPTIONS, part: { index: 2, of: 4 } })});
      for (let i = 0; ; i++) {
        await writer.add({ key: 'killed/' + i, jpg: Buffer.from(process.argv[2], 'base64') });
        if (i === 4) console.log('now');
      }`,
      output,
      jpeg(1).toString('base64'),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  const ended = once(child, 'close');
  child.kill('SIGKILL');
  await ended;
  const givenUp = new Writer(output, { ...OPTIONS, part: { index: 3, of: 4 } });
  for (const sample of given(3)) await givenUp.add(sample);
  await givenUp.abandon();
  await write(output, 1);
  await expect(openDataset(output)).rejects.toThrow('its pack did not finish');
  await expect(commitParts(output)).rejects.toThrow(
    /3 of the 4 parts of .* are not finished \(2\/4 was not started, 3\/4 did not end, 4\/4 did not end\)/,
  );
  await writeAll(output, [2, 3, 4]);
  const whole = newFolder();
  await writeAll(whole, [1, 2, 3, 4]);
  expect(digestsOf(output)).toEqual(digestsOf(whole));
});

test('a finished part is not written again without overwrite', async () => {
  const output = newFolder();
  await writeAll(output, [1, 2, 3]);
  await expect(write(output, 2)).rejects.toThrow(/Part 2\/4 of .* is finished; skip it/);
  await write(output, 2, { overwrite: true }, [{ key: 'other', jpg: jpeg(9) }]);
  await write(output, 4);
  expect(await keysOf(output)).toEqual(['p1/0', 'other', 'p3/0', 'p3/1', 'p3/2', 'p4/0', 'p4/1', 'p4/2', 'p4/3']);
  for (const overwrite of [false, true]) {
    await expect(write(output, 2, { overwrite })).rejects.toThrow('already contains a dataset');
  }
});

test('of two processes that write the same part at once, the second is rejected', async () => {
  const output = newFolder();
  const writer = new Writer(output, { ...OPTIONS, part: { index: 1, of: 4 } });
  await writer.add(given(2)[0]!);
  await expect(write(output, 2)).rejects.toThrow('is writing to this dataset');
  const whole = new Writer(output, OPTIONS);
  await expect(whole.add(given(1)[0]!)).rejects.toThrow('is writing to this dataset');
  await writer.add(given(2)[1]!);
  await writer.close();
});

test('the error for a key in two parts names both shards, and one part can be written again', async () => {
  const output = newFolder();
  await writeAll(output, [1, 2, 3]);
  const repeated = [{ key: 'x', jpg: jpeg(1) }, given(2)[1]!];
  await expect(write(output, 4, {}, repeated)).rejects.toThrow(
    /Two parts of .* have the key "p2\/1": it is in 2-of-4-000000\.tar and in 4-of-4-000000\.tar/,
  );
  await expect(commitParts(output)).rejects.toThrow('have the key "p2/1"');
  expect(await write(output, 4, { overwrite: true })).toMatchObject({ isCommitted: true });
});

test.each([
  [
    'another number of parts',
    { index: 0, of: 3 },
    {},
    /Part 2\/4 of .* was already started, and there are now 3 parts/,
  ],
  ['other classes', { index: 0, of: 4 }, { classes: ['cat'] }, /its classes was \["cat","dog"\] and is now \["cat"\]/],
  ['another format', { index: 0, of: 4 }, { format: 'lmdb' }, /its format was tar and is now lmdb/],
  ['no part', undefined, {}, /contains an unfinished pack/],
] as const)('%s than in the existing parts is rejected', async (_, part, other, sentence) => {
  const output = newFolder();
  await write(output, 2);
  const add = async () => new Writer(output, { ...OPTIONS, ...other, part }).add(given(1)[0]!);
  await expect(add()).rejects.toThrow(sentence);
});

test('no part replaces files that it did not write, and overwriting the whole removes all parts', async () => {
  const output = emptyFolder();
  writeFileSync(path.join(output, 'notes.txt'), 'mine');
  await expect(write(output, 1)).rejects.toThrow('contains notes.txt');
  const packed = newFolder();
  await pack(await smallImages({ samples: 3 }), packed, { part: { index: 0, of: 2 }, maxShardSamples: 1 });
  await expect(write(packed, 1)).rejects.toThrow('not written by a part of a writer');
  const begun = newFolder();
  await write(begun, 3);
  writeFileSync(path.join(begun, 'notes.txt'), 'mine');
  const whole = new Writer(begun, { overwrite: true });
  await whole.add({ key: 'a', jpg: jpeg(1) });
  await whole.close();
  expect(filesIn(begun)).toEqual(['000000.parquet', '000000.tar', 'dataset.json', 'notes.txt', 'pack.json']);
});

test('the error for a shard that has changed before the commit names it', async () => {
  const output = newFolder();
  await writeAll(output, [1, 2, 3]);
  rmSync(path.join(output, '2-of-4-000000.parquet'));
  await expect(write(output, 4)).rejects.toThrow(
    /2-of-4-000000\.tar, or a file next to it, has changed since part 2\/4 .* write the part again/,
  );
});

test('an invalid part is an error when the writer is created', () => {
  expect(() => new Writer('out', { part: { index: 4, of: 4 } })).toThrow(
    'an index from 0 to of - 1, such as { index: 2, of: 16 }',
  );
});

test('parts that are written to a bucket give the same as in a folder', async () => {
  const server = await defaultBucketServer();
  try {
    const givenUp = new Writer('s3://out/made', { ...OPTIONS, part: { index: 3, of: 4 } });
    for (const sample of given(3)) await givenUp.add(sample);
    await givenUp.abandon();
    await Promise.all([3, 1].map((number) => write('s3://out/made', number)));
    await expect(commitParts('s3://out/made')).rejects.toThrow('(2/4 was not started, 4/4 did not end)');
    await expect(write('s3://out/made', 3)).rejects.toThrow('Part 3/4 of s3://out/made is finished');
    await Promise.all([2, 4].map((number) => write('s3://out/made', number)));
    await writeJob('s3://out/job');
    const [made, job] = [newFolder(), newFolder()];
    await writeAll(made, [1, 2, 3, 4]);
    await writeJob(job);
    const files = [
      ...filesIn(job).map((file) => [`job/${file}`, path.join(job, file)] as const),
      ...filesIn(made).map((file) => [`made/${file}`, path.join(made, file)] as const),
    ];
    expect(server.names('out').sort()).toEqual(files.map(([name]) => name));
    for (const [name, file] of files) {
      const { bytes } = server.objects.get(`out/${name}`)!;
      expect(Buffer.from(bytes).equals(readFileSync(file))).toBe(true);
    }
  } finally {
    await server.stop();
  }
});

/** Writes the parts of a job whose total is open, and commits them. */
async function writeJob(output: string): Promise<void> {
  for (const number of [2, 1]) {
    expect(await writeOpen(output, number)).toMatchObject({ isCommitted: false, pendingParts: [] });
  }
  await expect(commitParts(output)).rejects.toThrow('only that job can commit them');
  await expect(commitParts(output, { parts: [1, 2, 3] })).rejects.toThrow('3/* was not started');
  await expect(commitParts(output, { parts: [2] })).rejects.toThrow('Part 1/* of');
  await expect(commitParts(output, { parts: [1, 1] })).rejects.toThrow('different whole numbers');
  expect(await commitParts(output, { parts: [2, 1] })).toMatchObject({ samples: 3, shards: 2 });
}

async function writeOpen(output: string, number: number, job = 'a') {
  const writer = new Writer(output, { ...OPTIONS, part: { index: number - 1 }, job });
  for (const sample of given(number)) await writer.add(sample);
  return writer.close();
}

test('parts of an unknown total are committed by a call that names all of them', async () => {
  const output = newFolder();
  await writeJob(output);
  expect(await keysOf(output)).toEqual(['p1/0', 'p2/0', 'p2/1']);
  expect(filesIn(output)).toContain('part-000002-000000.tar');
});

test('a part that its job has finished is kept, and a part of another job is rejected', async () => {
  const output = newFolder();
  await writeOpen(output, 1);
  await expect(writeOpen(output, 1)).rejects.toThrow(PartFinishedError);
  await expect(writeOpen(output, 1, 'b')).rejects.toThrow(PlanChangedError);
  await expect(writeOpen(output, 2, 'b')).rejects.toThrow(PlanChangedError);
  await expect(write(output, 2)).rejects.toThrow(PlanChangedError);
  await commitParts(output, { parts: [1] });
  expect(await keysOf(output)).toEqual(['p1/0']);
  expect(() => new Writer(newFolder(), { job: 'a' })).toThrow('also set "part"');
  const open = { part: { index: 0 } } as PackOptions;
  await expect(pack(await smallImages({ samples: 1 }), newFolder(), open)).rejects.toThrow('not { index: 0 }');
});
