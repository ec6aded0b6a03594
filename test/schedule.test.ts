/** Transforms that depend on the epoch: by the option schedule, and by setEpoch. */
import { closeSync, openSync, rmSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { type Batch, type LoaderOptions, openDataset, type StepInput } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';

const shards = await packedSmall({ samples: 60, classes: 2 });
const sized = (size: number): StepInput[] => [{ name: 'randomResizedCrop', size }, { name: 'randomHorizontalFlip' }];
const [small, middle, large] = [sized(16), sized(24), sized(40)];
const base = { batchSize: 8, seed: 3, workers: 1 } as const;
const schedule = [
  { epoch: 1, transform: large },
  { epoch: 2, transform: middle },
];

/** The compared properties of a batch. */
function seen({ epoch, keys, shape, images }: Batch) {
  return { epoch, keys: [...keys], shape, crc32: crc32(images!) };
}

async function loop(options: LoaderOptions) {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, ...options });
  const batches: ReturnType<typeof seen>[] = [];
  for await (const batch of loader) batches.push(seen(batch));
  return batches;
}

/** Epochs 0 to 3, each from a separate loader. */
async function expectedOf(options: LoaderOptions = {}) {
  const all: ReturnType<typeof seen>[] = [];
  for (const [epoch, transform] of [small, large, middle, middle].entries()) {
    all.push(...(await loop({ ...options, epoch, transform, checksum: 'always' })));
  }
  return all;
}

test('each epoch has its transform of the schedule, also within one loop and on every rank', async () => {
  const options = { transform: small, schedule, epochsPerLoop: 4 };
  const expected = await expectedOf();
  expect(await loop(options)).toEqual(expected);
  expect(await loop({ ...options, workers: 3, prefetchBatches: 9 })).toEqual(expected);
  for (const rank of [0, 1]) {
    const share = { rank, worldSize: 2, batchSize: 5 };
    expect(await loop({ ...options, ...share })).toEqual(await expectedOf(share));
  }
});

test('batches that are held across a change of size keep their pixels', async () => {
  const expected = await expectedOf();
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({
    ...base,
    ...{ transform: small, schedule, epochsPerLoop: 4, reuse: 'manual', prefetchBatches: 6 },
  });
  const held: { batch: Batch; at: number }[] = [];
  let at = 0;
  for await (const batch of loader) {
    held.push({ batch, at });
    at++;
    for (const one of held) expect(seen(one.batch)).toEqual(expected[one.at]);
    if (held.length === 4) held.shift()!.batch.release();
  }
  expect(at).toBe(expected.length);
});

test('setEpoch sets another transform for that epoch and the following ones', async () => {
  const expected = await expectedOf();
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, transform: small, checksum: 'always' });
  const batches: ReturnType<typeof seen>[] = [];
  for (const transform of [undefined, large, middle, undefined]) {
    if (transform !== undefined) loader.setEpoch(batches.at(-1)!.epoch + 1, { transform });
    for await (const batch of loader) batches.push(seen(batch));
  }
  expect(batches).toEqual(expected);
  // Going back finds the transform of that epoch.
  loader.setEpoch(1);
  for await (const batch of loader)
    expect(seen(batch)).toEqual(expected.find((one) => one.keys[0] === batch.keys[0] && one.epoch === 1));
});

test('setEpoch and a schedule can replace the transform of epoch 0, and a state then records it', async () => {
  const expected = await loop({ transform: large });
  expect(await loop({ transform: small, schedule: [{ epoch: 0, transform: large }] })).toEqual(expected);
  await using dataset = await openDataset(shards);
  const loader = dataset.loader({ ...base, transform: small });
  for await (const { shape } of loader) expect(shape![1]).toBe(16);
  loader.setEpoch(0, { transform: large });
  const batches: ReturnType<typeof seen>[] = [];
  let state: unknown;
  for await (const batch of loader) {
    batches.push(seen(batch));
    if (batch.index === 2) state = JSON.parse(JSON.stringify(loader.state()));
  }
  await loader.close();
  expect(batches).toEqual(expected);
  expect(await loop({ transform: small, state })).toEqual(expected.slice(3));
});

test('a state records the transform, and a run that resumes has the same pixels', async () => {
  const expected = await expectedOf();
  const [first] = await loop({ transform: small, epochsPerLoop: 4 });
  expect(first).toEqual(expected[0]);
  for (const bySchedule of [true, false]) {
    await using dataset = await openDataset(shards);
    const options = { ...base, transform: small, ...(bySchedule ? { schedule } : {}) };
    const loader = dataset.loader(options);
    if (bySchedule) loader.setEpoch(1);
    else loader.setEpoch(1, { transform: large });
    let state: { readonly transform?: unknown } = {};
    for await (const batch of loader) {
      state = JSON.parse(JSON.stringify(loader.state()));
      if (batch.index === 2) break;
    }
    await loader.close();
    expect(state.transform).toEqual(large);
    const ofEpoch = expected.filter(({ epoch }) => epoch === 1);
    const rest = await loop({ ...options, batchSize: 8, state });
    expect(rest).toEqual(ofEpoch.slice(3));
    if (!bySchedule) continue;
    const other = [{ epoch: 1, transform: middle }];
    await expect(loop({ ...options, schedule: other, state })).rejects.toThrow(
      /The state was saved with another transform in epoch 1 than the schedule has/,
    );
  }
});

test('batches of another size that are held in a slot file keep their bytes, whether slots grow or shrink', async () => {
  const name = path.join(emptyFolder(), 'slots');
  const file = openSync(name, 'w+');
  rmSync(name);
  const sizes = [small, large, middle, large, small, sized(64), small];
  const expected: ReturnType<typeof seen>[][] = [];
  for (const [epoch, transform] of sizes.entries()) expected.push(await loop({ epoch, transform, checksum: 'always' }));
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({
    ...base,
    transform: small,
    checksum: 'always',
    reuse: 'manual',
    slotFile: file,
    prefetchBatches: 7,
  });
  const held: { batch: Batch; epoch: number; at: number }[] = [];
  for (const [epoch, transform] of sizes.entries()) {
    loader.setEpoch(epoch, { transform });
    let at = 0;
    for await (const batch of loader) {
      const wanted = expected[epoch]![at]!;
      expect(seen(batch)).toEqual(wanted);
      // The last two batches of an epoch are held until the next epoch has ended, and one of them longer.
      if (at >= expected[epoch]!.length - 2) held.push({ batch, epoch, at });
      else batch.release();
      for (const one of held) expect(seen(one.batch)).toEqual(expected[one.epoch]![one.at]);
      at++;
    }
    expect(at).toBe(expected[epoch]!.length);
    while (held.length > 3) held.splice(epoch % 2, 1)[0]!.batch.release();
  }
  closeSync(file);
});

test.each<[LoaderOptions, RegExp]>([
  [
    {
      schedule: [
        { epoch: 2, transform: small },
        { epoch: 2, transform: large },
      ],
    },
    /schedule\[1\] has the epoch 2: epochs must be whole numbers in ascending order/,
  ],
  [
    { schedule: [{ epoch: 2, transfrom: small }] as never },
    /schedule\[0\] has no "transfrom"; did you mean "transform"\?/,
  ],
  [
    { schedule: [{ epoch: 2, transform: [{ name: 'resise' }] }] as never },
    /Step 1 of schedule\[0\], .* did you mean "resize"/,
  ],
  [{ schedule: [{ epoch: 2, transform: 'raw' }] as never }, /schedule\[0\] is 'raw', but other epochs decode images/],
  [
    { transform: small, schedule: [{ epoch: 2, transform: [...large, { name: 'toDtype', dtype: 'float32' }] }] },
    /must produce one dtype and layout, but one produces uint8 nhwc and another float32/,
  ],
  [
    { transform: small, schedule: [{ epoch: 2, transform: [{ name: 'resize', size: 9 }] }] },
    /must give all images the same size/,
  ],
  [{ schedule, views: { a: { transform: small } } }, /The option schedule does not work with views/],
  [
    { schedule, aspectBuckets: [[16, 16]] },
    /aspectBuckets and a transform for some epochs both set the size of images/,
  ],
])('the error for the schedule %j names it', async (options, message) => {
  await expect(loop(options)).rejects.toThrow(message);
});

test('setEpoch rejects a transform together with a schedule, and a transform with an unknown step', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...base, transform: small, schedule });
  expect(() => loader.setEpoch(1, { transform: large })).toThrow(
    /The option schedule sets the transform of every epoch/,
  );
  await using other = dataset.loader({ ...base, transform: small });
  expect(() => other.setEpoch(1, { transform: [{ name: 'resise' }] as never })).toThrow(
    /Step 1 of the transform of epoch 1/,
  );
});
