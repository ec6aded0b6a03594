import { rmSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { inspect } from '@shardtool/reader';
import { convert, pack, repair, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { packedSmall, smallImages } from './datasets.js';
import { newFolder } from './pack-workbench.js';

const failure = new Error('from the callback');
const CALLBACKS = [
  [
    'throws',
    () => {
      throw failure;
    },
  ],
  ['rejects', () => Promise.reject(failure)],
] as const;

/** A dataset of three shards, the second of which is truncated. */
async function damaged(): Promise<string> {
  const dataset = await packedSmall({ samples: 9 }, { maxShardSamples: 3 });
  truncateSync(path.join(dataset, '000001.tar'), 2000);
  return dataset;
}

test.each(CALLBACKS)(
  'pack rejects with the error of an onProgress that %s, and resumes when it is called again',
  async (_, onProgress) => {
    const source = await smallImages({ samples: 9 });
    for (const options of [{}, { workers: 2 }, { inFlight: 4 }, { part: { index: 0, of: 1 } }, { dryRun: true }]) {
      const output = newFolder();
      await expect(pack(source, output, { ...options, onProgress })).rejects.toBe(failure);
      expect((await pack(source, output, { workers: 1 })).classes).toEqual(['a']);
    }
  },
);

test.each(CALLBACKS)(
  'convert rejects with the error of an onProgress that %s, and resumes when it is called again',
  async (_, onProgress) => {
    const source = await packedSmall({ samples: 9 }, { maxShardSamples: 3 });
    for (const [input, workers] of [
      [source, 1],
      [source, 2],
      [path.join(source, '000000.tar'), 1],
    ] as const) {
      const output = newFolder();
      await expect(convert(input, output, { format: 'msgpack', workers, onProgress })).rejects.toBe(failure);
      const { samples } = await convert(input, output, { format: 'msgpack', workers: 1 });
      expect(samples).toBe(input === source ? 9 : 3);
    }
  },
);

test.each(CALLBACKS)('verify and inspect reject with the error of a callback that %s', async (_, callback) => {
  const dataset = await damaged();
  for (const workers of [1, 2]) {
    await expect(verify(dataset, { workers, onProgress: callback })).rejects.toBe(failure);
    await expect(verify(dataset, { workers, onFault: callback })).rejects.toBe(failure);
  }
  await expect(inspect(await packedSmall({ samples: 3 }), { workers: 1, onProgress: callback })).rejects.toBe(failure);
});

test.each(CALLBACKS)(
  'repair rejects with the error of a callback that %s, and can be called again',
  async (_, callback) => {
    const dataset = await damaged();
    await expect(repair(dataset, { workers: 1, onProgress: callback })).rejects.toBe(failure);
    await expect(repair(dataset, { workers: 1, onTakenOut: callback })).rejects.toBe(failure);
    rmSync(path.join(dataset, 'quarantine'), { recursive: true, force: true });
    expect(await repair(dataset, { workers: 1 })).toMatchObject({ samples: expect.any(Number) as number });
    expect((await verify(dataset, { workers: 1 })).faults).toBe(0);
  },
);

test('only the first of several errors is thrown, and the callback is not called again', async () => {
  const dataset = await packedSmall({ samples: 9 }, { maxShardSamples: 3 });
  let calls = 0;
  const onProgress = () => {
    throw new Error(`call ${++calls}`);
  };
  await expect(verify(dataset, { workers: 1, onProgress })).rejects.toThrow('call 1');
  expect(calls).toBe(1);
});
