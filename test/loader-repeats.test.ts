import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { type LoaderOptions, openDataset, openMixture, SampleDecoder } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { badKeys, order, run } from './bad-samples.js';
import { emptyFolder, packedSmall } from './datasets.js';
import { batchesOf, keysOf, linesOf, type Seen, validKeysOf } from './loader-look.js';

const shards = await packedSmall({ samples: 70, classes: 4 }, { maxShardSamples: 15 });
const transform = [{ name: 'randomResizedCrop', size: 16, scale: [0.1, 1] }] as const;
const base = { transform, batchSize: 12, seed: 3, streams: 6, blockSamples: 4, lastBatch: 'partial' } as const;
const dataset = await openDataset(shards);

/** For each row of an epoch, in the order of all ranks: key, repetition, and the pixels that a decoder draws for it. */
async function expectedLines(options: LoaderOptions, repeats: number, epoch = 0): Promise<string[]> {
  const once = keysOf(await batchesOf(shards, { ...base, ...options, epoch }));
  const decoder = await SampleDecoder.open(dataset, { transform, seed: base.seed });
  const lines: string[] = [];
  for (const key of once) {
    for (let occurrence = 0; occurrence < repeats; occurrence++) {
      const { image, label } = await decoder.get(key, { epoch, occurrence });
      lines.push(`${epoch} ${key} ${label} ${crc32(image!.pixels as Uint8Array)}`);
    }
  }
  decoder.close();
  return lines;
}

/** The rows of several ranks in the order of the epoch. */
async function ranksOf(options: LoaderOptions, worldSize: number): Promise<string[]> {
  const each: LoaderOptions = {
    ...base,
    ...options,
    batchSize: base.batchSize / worldSize,
    lastBatch: 'pad',
    worldSize,
  };
  const ranks = await Promise.all(
    Array.from({ length: worldSize }, async (_, rank) => rowsOf(await batchesOf(shards, { ...each, rank }))),
  );
  return ranks[0]!.flatMap((_, row) => ranks.map((rows) => rows[row]!)).filter((line) => line !== '');
}

/** A line for each row; '' if it does not count. */
function rowsOf(seen: readonly Seen[]): string[] {
  return seen.flatMap((batch) => {
    const lines = linesOf([batch]);
    return batch.valid.map((valid) => (valid === 1 ? lines.shift()! : ''));
  });
}

test('each sample is delivered several times in a row, each with its own random numbers, on any number of ranks', async () => {
  const expected = await expectedLines({}, 3);
  expect(new Set(expected).size).toBe(210);
  for (const workers of [1, 3])
    expect(linesOf(await batchesOf(shards, { ...base, repeats: 3, workers }))).toEqual(expected);
  for (const worldSize of [2, 3, 6]) expect(await ranksOf({ repeats: 3 }, worldSize)).toEqual(expected);
  // With more ranks than repetitions, a rank reads only its own samples.
  expect(await ranksOf({ repeats: 2 }, 6)).toEqual(await expectedLines({}, 2));
  expect(await ranksOf({ repeats: 3, shuffleUnit: 'sample' }, 3)).toEqual(
    await expectedLines({ shuffleUnit: 'sample' }, 3),
  );
});

test('a run resumes after every batch, on another number of ranks, with the repetitions of its state', async () => {
  const expected = await expectedLines({}, 3);
  const loader = dataset.loader({ ...base, repeats: 3, workers: 1 });
  const states: unknown[] = [];
  for await (const _ of loader) states.push(JSON.parse(JSON.stringify(loader.state())));
  expect(await loader.info()).toMatchObject({ samples: 210 });
  await loader.close();
  expect(states).toHaveLength(18);
  for (const [batch, state] of states.slice(0, -1).entries()) {
    // A resumed run starts new workers.
    if (batch % 4 !== 0) continue;
    expect(state).toMatchObject({ repeats: 3 });
    const left = expected.slice((batch + 1) * base.batchSize);
    expect(linesOf(await batchesOf(shards, { ...base, state }))).toEqual(left);
    if (batch % 8 === 0) expect(await ranksOf({ state, repeats: 3 }, 3)).toEqual(left);
  }
  await expect(batchesOf(shards, { ...base, state: states[0], repeats: 2 })).rejects.toThrow(
    'The state was saved with repeats 3, but repeats is 2 now',
  );
  const once = dataset.loader(base);
  for await (const _ of once) break;
  const plain = once.state();
  await once.close();
  expect(plain).not.toHaveProperty('repeats');
  await expect(batchesOf(shards, { ...base, state: plain, repeats: 3 })).rejects.toThrow('saved with repeats 1');
  expect(await batchesOf(shards, { ...base, state: plain, repeats: 1 })).toHaveLength(5);
});

test('samplesPerEpoch counts repetitions, and the next epoch continues in the middle of a sample', async () => {
  const passes = [...(await expectedLines({}, 3)), ...(await expectedLines({}, 3, 1))];
  const seen = await batchesOf(shards, { ...base, repeats: 3, samplesPerEpoch: 70, epochsPerLoop: 4 });
  // The first word of a line is the epoch, and the random numbers are those of the pass.
  const without = (lines: readonly string[]) => lines.map((line) => line.slice(line.indexOf(' ')));
  expect(without(linesOf(seen))).toEqual(without(passes).slice(0, 280));
  expect(seen.map(({ epoch }) => epoch)).toEqual([0, 1, 2, 3].flatMap((epoch) => new Array(6).fill(epoch)));
});

test('selected, weighted and ordered samples are repeated, each time with other random numbers', async () => {
  const where = await batchesOf(shards, { ...base, where: 'cls == 2', repeats: 4 });
  const selected = keysOf(await batchesOf(shards, { ...base, where: 'cls == 2' }));
  expect(keysOf(where)).toEqual(selected.flatMap((key) => [key, key, key, key]));
  const ordered = await batchesOf(shards, { ...base, indices: [5, 5, 9], repeats: 2 });
  expect(keysOf(ordered)).toEqual(keysOf(await batchesOf(shards, { ...base, indices: [5, 5, 5, 5, 9, 9] })));
  expect(new Set(linesOf(ordered)).size).toBe(6);
  const weighted = { ...base, weights: [[0, 2]] as [number, number][], samplesPerEpoch: 180 };
  const lines = linesOf(await batchesOf(shards, { ...weighted, repeats: 2 }));
  expect([lines.length, new Set(lines).size]).toEqual([180, 180]);
});

test('a bad sample is skipped in each of its repetitions, as in the order without them', async () => {
  const { seen, loader } = await run({ repeats: 3, onBad: 'skip' });
  expect(keysOf(seen)).toEqual(order.flatMap((key) => [key, key, key]));
  const sound = order.filter((key) => !badKeys.includes(key));
  expect(validKeysOf(seen)).toEqual(sound.flatMap((key) => [key, key, key]));
  expect(loader.report().bad).toBe(3 * badKeys.length);
  await expect(run({ repeats: 3 })).rejects.toThrow(`sample "${badKeys[0]}" cannot be used`);
});

test('a custom step cannot drop a repeated sample', async () => {
  const module = path.join(emptyFolder(), 'steps.mjs');
  writeFileSync(module, 'export const drop = (fields, { number }) => (number === 20 ? null : fields);\n');
  const customSteps = { fields: { module, export: 'drop' } };
  expect(await batchesOf(shards, { ...base, customSteps })).toHaveLength(6);
  await expect(batchesOf(shards, { ...base, customSteps, repeats: 2 })).rejects.toThrow(/drops sample.*with repeats/);
});

test('repeats is rejected by name with options that it cannot be combined with', async () => {
  await expect(batchesOf(shards, { ...base, repeats: 0 })).rejects.toThrow('repeats');
  await expect(batchesOf(shards, { ...base, repeats: 2, aspectBuckets: [[16, 16]] })).rejects.toThrow(
    'repeats does not work with aspectBuckets',
  );
  await expect(batchesOf(shards, { ...base, repeats: 2, onBad: 'replace' })).rejects.toThrow(
    "repeats does not work with onBad 'replace'",
  );
  const groups = [
    [3, 8],
    [8, 1],
  ];
  await expect(batchesOf(shards, { ...base, repeats: 2, indices: groups })).rejects.toThrow('groups of indices');
  await using mixed = await openMixture([{ dataset: shards }, { dataset: shards, name: 'again' }]);
  await using loader = mixed.loader({ ...base, repeats: 2 });
  await expect(loader.info()).rejects.toThrow('repeats does not work with a mixture');
});
