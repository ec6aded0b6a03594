import { deferred, WakeSignal } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import { expect, test } from 'vitest';
import { LOCAL } from '../../../dataset/shards/read-profiles.js';
import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import { type AheadOptions, UnreadReader } from './unread-reader.js';

const BLOCKS = 6;
const BLOCK_SAMPLES = 4;
const SAMPLE_BYTES = 2 ** 21;
const SAMPLES = BLOCKS * BLOCK_SAMPLES;

/** A reader of six blocks of a shard whose reads end when the test ends them. */
function reading(
  given: Partial<Omit<AheadOptions, 'speed'>> & { readonly speed?: Partial<AheadOptions['speed']> } = {},
) {
  const wakeSignal = new WakeSignal();
  const index = {
    samples: SAMPLES,
    offset: Float64Array.from({ length: SAMPLES }, (_, row) => row * SAMPLE_BYTES),
    bytes: new Uint32Array(SAMPLES).fill(SAMPLE_BYTES),
  } as unknown as LoadedIndex;
  const reads: { readonly offset: number; readonly bytes: number; end(error?: Error): void }[] = [];
  const store = {
    bytes: {
      read: ({ offset }: { offset: number }, { length }: Uint8Array) => {
        const { promise, resolve, reject } = deferred();
        reads.push({ offset, bytes: length, end: (error) => (error === undefined ? resolve() : reject(error)) });
        return promise;
      },
      mayDiffer: false,
    },
    indexes: { index: async () => index, checkSizes: () => {} },
    costs: { profile: LOCAL, parallel: 2 },
  } as unknown as ShardStore;
  const blocks = Array.from({ length: BLOCKS }, (_, ordinal): PlannedBlock => {
    const first = ordinal * BLOCK_SAMPLES;
    const samples = Uint32Array.from({ length: BLOCK_SAMPLES }, (_, i) => first + i);
    const pieces = [{ shard: 0, first, count: BLOCK_SAMPLES, number: first }];
    return { ordinal, source: 0, pass: 0, samples, from: 0, pieces, uses: BLOCK_SAMPLES };
  });
  const ahead: AheadOptions = {
    wakeSignal,
    buffers: 4,
    readConcurrency: undefined,
    demand: { isUrgent: () => false },
    firstRows: 0,
    all: null,
    ...given,
    speed: { isKnown: true, isSlow: true, settle: () => {}, begin: () => {}, ...given.speed } as AheadOptions['speed'],
  };
  const reader = new UnreadReader({
    blocks: blocks.values(),
    samplesOf: () => ({ firstShard: 0, first: new Float64Array(1), isWhole: true, rows: () => null }),
    store,
    ahead,
  });
  return { reader, reads, wakeSignal };
}

/** Runs everything that is ready to run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

async function endReads(reads: ReturnType<typeof reading>['reads']): Promise<void> {
  for (let ended = -1; ended < reads.length; await settled()) {
    ended = reads.length;
    for (const { end } of reads) end();
  }
}

test('while reads are fast, blocks are available immediately and nothing is read', async () => {
  const { reader, reads } = reading({ speed: { isSlow: false } });
  const block = await reader.get(2);
  expect(block).toMatchObject({ ordinal: 2, inShards: true, bytes: 0 });
  expect(reader.get(2)).toBe(block);
  await reader.close();
  expect(reads).toEqual([]);
});

test('rows of the first batch do not wait, and later rows wait until their block was read', async () => {
  const { reader, reads } = reading({ firstRows: 2 });
  const first = await reader.get(0);
  expect(await reader.get(1)).toMatchObject({ ordinal: 1 });
  const later = reader.get(0);
  expect(later).toBeInstanceOf(Promise);
  await settled();
  expect(reads.length).toBe(2);
  await endReads(reads);
  expect(await later).toBe(first);
  // Four blocks, each in pieces of at most 1 MiB.
  expect(reads.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(4 * BLOCK_SAMPLES * SAMPLE_BYTES);
  expect(Math.max(...reads.map(({ bytes }) => bytes))).toBe(2 ** 20);
  await reader.close();
});

test('releasing a block makes room for the next, and the last block ends the reading', async () => {
  const { reader, reads } = reading();
  for (let ordinal = 0; ordinal < BLOCKS; ordinal++) {
    const got = reader.get(ordinal);
    await endReads(reads);
    reader.release(await got);
  }
  await endReads(reads);
  expect(reads.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(SAMPLES * SAMPLE_BYTES);
  await reader.close();
});

test('until the speed is known, rows after the first batch wait, unless the consumer is waiting', async () => {
  const speed = { isKnown: false, isSlow: false };
  let isUrgent = false;
  const { reader, wakeSignal } = reading({
    firstRows: 1,
    speed: { ...speed, settle: () => {} },
    demand: { isUrgent: () => isUrgent },
  });
  await reader.get(0);
  let isThere = false;
  const second = Promise.resolve(reader.get(1)).then(() => {
    isThere = true;
  });
  await settled();
  expect(isThere).toBe(false);
  isUrgent = true;
  wakeSignal.notify();
  await second;
  await reader.close();
});

test('an error while a block is read is thrown to those who wait for this block or a later one', async () => {
  const { reader, reads } = reading();
  const first = reader.get(0);
  const second = reader.get(1);
  await settled();
  reads[1]!.end(new Error('the cable was pulled'));
  await expect(second).rejects.toThrow('the cable was pulled');
  await endReads(reads);
  expect(await first).toMatchObject({ ordinal: 0 });
  await expect(reader.get(2)).rejects.toThrow('the cable was pulled');
  await reader.close();
});

test('closing the reader ends the running reads and rejects waiting callers', async () => {
  const { reader, reads } = reading();
  const waiting = expect(reader.get(3)).rejects.toThrow('The loader was closed');
  await settled();
  let isClosed = false;
  const closing = reader.close().then(() => {
    isClosed = true;
  });
  await waiting;
  await settled();
  expect(isClosed).toBe(false);
  const { length } = reads;
  for (const { end } of reads) end();
  await closing;
  expect(reads.length).toBe(length);
});

test('if every block needs samples from all of the shard, all are read once in order, and no row waits', async () => {
  const rows = Uint32Array.from({ length: SAMPLES }, (_, row) => row);
  const { reader, reads } = reading({ all: () => [{ shard: 0, rows }] });
  expect(await reader.get(5)).toMatchObject({ ordinal: 5 });
  await endReads(reads);
  expect(reads.map(({ offset }) => offset)).toEqual(reads.map((_, i) => i * 2 ** 20));
  expect(reads.length).toBe((SAMPLES * SAMPLE_BYTES) / 2 ** 20);
  await reader.close();
});
