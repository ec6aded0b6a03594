import { OptionError, ShardtoolError } from '@shardtool/base';
import { type Dataset, inspect, openDataset, openMixture, planDataset, splitDataset } from '@shardtool/reader';
import { commitParts, convert, indexShards, pack, repair, verify, Writer } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';

const shards = await packedSmall({ samples: 20, classes: 2 });

test.each([
  [
    'openDataset',
    () => openDataset(shards, { overlays: 'x' } as never),
    'openDataset has no option "overlays"; did you mean "overlay"?',
  ],
  ['get', async (dataset: Dataset) => dataset.get(0, { checksums: true } as never), 'did you mean "checksum"?'],
  ['samples', async (dataset: Dataset) => dataset.samples({ form: 3 } as never), 'did you mean "from"?'],
  ['verify', () => verify(shards, { onfault: () => undefined } as never), 'did you mean "onFault"?'],
  ['repair', () => repair(shards, { checks: 'decode' } as never), 'did you mean "check"?'],
  ['inspect', () => inspect(shards, { worker: 1 } as never), 'did you mean "workers"?'],
])('%s refuses an option that it does not have, and says which is meant', async (_, call, message) => {
  await using dataset = await openDataset(shards);
  const error = await failureOf(() => call(dataset));
  expect(error).toBeInstanceOf(OptionError);
  expect((error as Error).message).toContain(message);
});

test.each([
  ['openDataset', (signal: AbortSignal) => openDataset(shards, { signal })],
  ['get', async (signal: AbortSignal, dataset: Dataset) => dataset.get(0, { signal })],
  ['samples', async (signal: AbortSignal, dataset: Dataset) => dataset.samples({ signal }).next()],
  ['verify', (signal: AbortSignal) => verify(shards, { signal })],
  ['repair', (signal: AbortSignal) => repair(shards, { signal })],
  ['inspect', (signal: AbortSignal) => inspect(shards, { signal })],
])('%s ends with the reason of a signal', async (_, call) => {
  await using dataset = await openDataset(shards);
  const reason = new Error('no longer wanted');
  await expect(call(AbortSignal.abort(reason), dataset)).rejects.toBe(reason);
});

/** What no function of the API takes. */
const JUNK: readonly unknown[] = [
  null,
  0,
  -1,
  Number.NaN,
  '',
  '\0',
  true,
  Symbol('x'),
  10n,
  [],
  [null],
  {},
  { a: () => 1 },
  new Map(),
  () => 1,
  new Uint8Array(2),
  Object.create(null),
];
/** Functions with as many arguments as a caller has to give, and then options. */
const CALLS: readonly (readonly [string, (...junk: readonly never[]) => unknown])[] = [
  ['openDataset', openDataset],
  ['openMixture', openMixture],
  ['verify', verify],
  ['repair', repair],
  ['inspect', inspect],
  ['indexShards', indexShards],
  ['splitDataset', splitDataset],
  ['commitParts', commitParts],
  ['convert', (a, b) => convert(a, emptyFolder(), b)],
  ['pack', (a, b) => pack(a, emptyFolder(), b)],
  ['Writer', (a, b) => new Writer(a, b)],
];

/** What a call throws, or rejects with; what it gives is closed, or its first value requested. */
async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    const result = (await call()) as { close?(): unknown; next?(): unknown } | undefined;
    await (result?.close ?? result?.next)?.call(result);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The stacks of what calls with junk fail with, unless shardtool foresaw it. */
async function unforeseen(call: (...junk: readonly never[]) => unknown, first: unknown): Promise<string[]> {
  const found: string[] = [];
  for (const junk of JUNK) {
    for (const args of [[junk], [first, junk]]) {
      const error = await failureOf(() => call(...(args as never[])));
      if (error !== undefined && !(error instanceof ShardtoolError))
        found.push((error as Error).stack ?? String(error));
    }
  }
  return found;
}

test.each(CALLS)('%s answers junk with an error of shardtool', async (_, call) => {
  expect(await unforeseen(call, shards)).toEqual([]);
});

test.each(['get', 'samples', 'loader', 'indexOf'] as const)(
  '%s of a dataset answers junk with an error of shardtool',
  async (method) => {
    await using dataset = await openDataset(shards);
    expect(await unforeseen((...junk) => (dataset[method] as (...given: unknown[]) => unknown)(...junk), 0)).toEqual(
      [],
    );
  },
);

test('planDataset answers junk with an error of shardtool', async () => {
  await using dataset = await openDataset(shards);
  expect(await unforeseen((options) => planDataset(dataset, options), {})).toEqual([]);
});
