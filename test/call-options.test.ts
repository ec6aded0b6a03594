import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { OptionError, ShardtoolError } from '@shardtool/base';
import {
  addOverlay,
  checkOverlays,
  countAnnotations,
  type Dataset,
  findDuplicateKeys,
  getStats,
  inspect,
  listOverlays,
  openDataset,
  openMixture,
  overlayHistory,
  planAspectBuckets,
  planDataset,
  planMixture,
  readOverlay,
  removeOverlay,
  SampleDecoder,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import {
  collectGarbage,
  commitParts,
  compactDataset,
  convert,
  eraseSamples,
  indexShards,
  listVersions,
  pack,
  repair,
  restoreVersion,
  verify,
  Writer,
} from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';

const shards = await packedSmall({ samples: 20, classes: 2 });

/** Every function with call options, with its other arguments. */
const TAKING_OPTIONS: readonly (readonly [string, (options: object, dataset: Dataset) => unknown])[] = [
  ['openDataset', (options) => openDataset(shards, options)],
  ['openMixture', (options) => openMixture([{ dataset: shards }], options)],
  ['get', (options, dataset) => dataset.get(0, options)],
  ['samples', (options, dataset) => dataset.samples(options).next()],
  ['plan', (options, dataset) => dataset.plan(options)],
  ['inspect', (options) => inspect(shards, options)],
  ['splitDataset', (options) => splitDataset(copy(), { shares: new Map([['val', 0.5]]), ...options })],
  ['subsetDataset', (options) => subsetDataset(copy(), { name: 'part', share: 0.5, ...options })],
  ['addOverlay', (options) => addOverlay(copy(), { name: 'less', excludeWhere: 'width > 0', ...options })],
  ['listOverlays', (options) => listOverlays(overlaid, options)],
  ['readOverlay', (options) => readOverlay(overlaid, 'x', options)],
  ['overlayHistory', (options) => overlayHistory(overlaid, 'x', options)],
  ['checkOverlays', (options) => checkOverlays(overlaid, options)],
  ['removeOverlay', (options) => removeOverlay(overlaid, 'x', options)],
  ['verify', (options) => verify(shards, options)],
  ['repair', (options) => repair(copy(), options)],
  ['indexShards', (options) => indexShards([copy()], options)],
  ['commitParts', (options) => commitParts(emptyFolder(), options)],
  ['listVersions', (options) => listVersions(shards, options)],
  ['restoreVersion', (options) => restoreVersion(copy(), 'abc', options)],
  ['eraseSamples', (options) => eraseSamples(copy(), { where: 'width > 0', ...options })],
  ['collectGarbage', (options) => collectGarbage(copy(), { keep: 1, ...options })],
  ['convert', (options) => convert(shards, emptyFolder(), { format: 'msgpack', ...options })],
  ['pack', (options) => pack('examples/photos', emptyFolder(), options)],
  ['compactDataset', (options) => compactDataset(copy(), options)],
  ['getStats', (options, dataset) => getStats(dataset, options)],
  ['findDuplicateKeys', (options, dataset) => findDuplicateKeys(dataset, options)],
  ['countAnnotations', (options, dataset) => countAnnotations(dataset, { boxes: { field: 'json' } }, options)],
  ['planAspectBuckets', (options, dataset) => planAspectBuckets(dataset, { aspectBuckets: [[8, 8]], ...options })],
  ['planMixture', (options) => planMixture(mixture, options)],
  ['Dataset.stats', (options, dataset) => dataset.stats(options)],
  ['Dataset.inspect', (options, dataset) => dataset.inspect(options)],
  ['Dataset.verify', (options, dataset) => dataset.verify(options)],
  ['SampleDecoder.get', decoded],
  ['Writer', (options) => written(options)],
];

const photo = readFileSync('examples/photos/cat/cat_001.jpg');
const mixture = await openMixture([{ dataset: shards }]);

async function decoded(options: object, dataset: Dataset): Promise<unknown> {
  const decoder = await SampleDecoder.open(dataset);
  try {
    return await decoder.get(0, options);
  } finally {
    decoder.close();
  }
}

async function written(options: object): Promise<unknown> {
  const writer = new Writer(emptyFolder(), options);
  try {
    await writer.add({ key: 'a', jpg: photo });
    return await writer.close();
  } finally {
    await writer.abandon();
  }
}

/** The files of a folder, with their sizes, which a rejected or aborted call must not change. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => `${name} ${statSync(path.join(folder, name)).size}`);
}

const copies: string[] = [];

/** A copy of the dataset, which a call can change. */
function copy(): string {
  const folder = emptyFolder();
  cpSync(shards, folder, { recursive: true });
  copies.push(folder);
  return folder;
}

const overlaid = copy();
await addOverlay(overlaid, { name: 'x', excludeKeys: [(await firstKeyOf(shards))!] });

async function firstKeyOf(location: string): Promise<string | undefined> {
  await using dataset = await openDataset(location);
  for await (const { key } of dataset.samples()) return key;
  return undefined;
}

test.each(TAKING_OPTIONS)('%s rejects an unknown option, and suggests the option that was meant', async (_, call) => {
  await using dataset = await openDataset(shards);
  const signal = new AbortController().signal;
  const error = await failureOf(() => call({ signall: signal }, dataset));
  expect(error).toBeInstanceOf(OptionError);
  expect((error as Error).message).toMatch(/"signall".*did you mean "signal"\?/);
});

test.each(TAKING_OPTIONS)('%s rejects a value that is not a signal', async (_, call) => {
  await using dataset = await openDataset(shards);
  const error = await failureOf(() => call({ signal: { aborted: true } }, dataset));
  expect(error).toBeInstanceOf(OptionError);
  expect((error as OptionError).options).toEqual(['signal']);
});

test.each(TAKING_OPTIONS)('%s throws the reason of an aborted signal, and changes nothing', async (_, call) => {
  await using dataset = await openDataset(shards);
  const before = filesOf(shards);
  const reason = new Error('no longer wanted');
  copies.length = 0;
  expect(await failureOf(() => call({ signal: AbortSignal.abort(reason) }, dataset))).toBe(reason);
  for (const folder of copies) expect(filesOf(folder)).toEqual(before);
});

test.each(TAKING_OPTIONS)('%s throws the reason of a signal that is aborted during its work', async (name, call) => {
  await using dataset = await openDataset(shards);
  const before = filesOf(shards);
  const reason = new Error('no longer wanted');
  const controller = new AbortController();
  copies.length = 0;
  const failure = failureOf(() => call({ signal: controller.signal }, dataset));
  controller.abort(reason);
  expect(await failure).toBe(reason);
  if (UNDOES_NOTHING.includes(name)) for (const folder of copies) expect(filesOf(folder)).toEqual(before);
});

/** Calls that write only at their end. */
const UNDOES_NOTHING = ['splitDataset', 'subsetDataset', 'addOverlay'];

test.each([
  ['overlays', 'openDataset', () => openDataset(shards, { overlays: 'x' } as never), 'did you mean "overlay"?'],
  ['checksums', 'get', (dataset: Dataset) => dataset.get(0, { checksums: true } as never), 'did you mean "checksum"?'],
  ['form', 'samples', async (dataset: Dataset) => dataset.samples({ form: 3 } as never), 'did you mean "from"?'],
  ['onfault', 'verify', () => verify(shards, { onfault: () => undefined } as never), 'did you mean "onFault"?'],
  ['checks', 'repair', () => repair(shards, { checks: 'decode' } as never), 'did you mean "check"?'],
  ['worker', 'inspect', () => inspect(shards, { worker: 1 } as never), 'did you mean "workers"?'],
])('the error for the unknown option %s of %s suggests the right one', async (_, _name, call, message) => {
  await using dataset = await openDataset(shards);
  const error = await failureOf(() => call(dataset));
  expect(error).toBeInstanceOf(OptionError);
  expect((error as Error).message).toContain(message);
});

/** Values that no function of the API accepts. */
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
/** Functions with the number of required arguments, which are followed by options. */
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
  ['SampleDecoder.open', SampleDecoder.open],
  ['compactDataset', compactDataset],
  ['listOverlays', listOverlays],
  ['subsetDataset', subsetDataset],
  ['getStats', getStats],
  ['findDuplicateKeys', findDuplicateKeys],
  ['countAnnotations', countAnnotations],
  ['planAspectBuckets', planAspectBuckets],
  ['planMixture', planMixture],
];

/** The error that a call throws or rejects with; its result is closed, or its first value requested. */
async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    const result = (await call()) as { close?(): unknown; next?(): unknown } | undefined;
    await (result?.close ?? result?.next)?.call(result);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The stacks of unexpected errors of calls with random arguments. */
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

test.each(CALLS)('%s rejects random arguments with a ShardtoolError', async (_, call) => {
  expect(await unforeseen(call, shards)).toEqual([]);
});

test.each(['get', 'samples', 'loader', 'indexOf'] as const)(
  '%s of a dataset rejects random arguments with a ShardtoolError',
  async (method) => {
    await using dataset = await openDataset(shards);
    expect(await unforeseen((...junk) => (dataset[method] as (...given: unknown[]) => unknown)(...junk), 0)).toEqual(
      [],
    );
  },
);

test('planDataset rejects random arguments with a ShardtoolError', async () => {
  await using dataset = await openDataset(shards);
  expect(await unforeseen((options) => planDataset(dataset, options), {})).toEqual([]);
});

test.each([
  ['getStats', getStats],
  ['findDuplicateKeys', findDuplicateKeys],
  ['planAspectBuckets', planAspectBuckets],
  ['planMixture', planMixture],
  [
    'countAnnotations',
    (dataset: never, options: never) => countAnnotations(dataset, { boxes: { field: 'json' } }, options),
  ],
])('%s rejects random options with a ShardtoolError', async (_, call) => {
  await using dataset = await openDataset(shards);
  expect(await unforeseen((options) => call(dataset as never, options as never), {})).toEqual([]);
});

test('a call that takes an open dataset reports that it got a location', async () => {
  const error = await failureOf(() => getStats(shards as never));
  expect((error as Error).message).toBe(
    'getStats takes an open dataset, and not its location: open it with openDataset first.',
  );
});

/** Calls that take a location. Mixtures have storage options in each part. */
const WITH_LOCATION = TAKING_OPTIONS.filter(
  ([name]) =>
    !['openMixture', 'get', 'samples', 'plan', 'getStats', 'findDuplicateKeys', 'countAnnotations'].includes(name) &&
    !['planAspectBuckets', 'planMixture', 'Dataset.stats', 'SampleDecoder.get'].includes(name),
);

test.each(WITH_LOCATION)('%s accepts storage options, and rejects unknown ones', async (_, call) => {
  await using dataset = await openDataset(shards);
  const error = await failureOf(() => call({ storage: { endpointURL: 'x' } }, dataset));
  expect(error).toBeInstanceOf(OptionError);
  expect((error as Error).message).toMatch(/storage.*no option "endpointURL".*did you mean "endpointUrl"\?/);
  const wrong = await failureOf(() => call({ storage: { region: 5 } }, dataset));
  expect(wrong).toBeInstanceOf(OptionError);
  expect((wrong as OptionError).options).toEqual(['storage.region']);
});

test('an aborted writer releases its folder, even if it is waiting for samples', async () => {
  const folder = emptyFolder();
  const controller = new AbortController();
  const writer = new Writer(folder, { signal: controller.signal });
  await writer.add({ key: 'a', jpg: photo });
  const reason = new Error('no longer wanted');
  controller.abort(reason);
  expect(await failureOf(() => writer.add({ key: 'b', jpg: photo }))).toBe(reason);
  expect(await failureOf(() => writer.close())).toBe(reason);
  await writer.abandon();
  expect(existsSync(path.join(folder, 'pack.lock'))).toBe(false);
  const other = new Writer(folder, { overwrite: true });
  await other.add({ key: 'a', jpg: photo });
  expect(await other.close()).toMatchObject({ samples: 1 });
});

test('the progress of statistics counts indexes, and an error of the callback ends the call', async () => {
  await using dataset = await openDataset(shards);
  const seen: unknown[] = [];
  await dataset.stats({ keysAtOnce: 10, onProgress: (progress) => seen.push(progress) });
  expect(seen).toEqual([
    { indexes: 1, totalIndexes: 2 },
    { indexes: 2, totalIndexes: 2 },
  ]);
  const failure = new Error('of the callback');
  const onProgress = () => {
    throw failure;
  };
  expect(await failureOf(() => findDuplicateKeys(dataset, { onProgress }))).toBe(failure);
});

test('dataset.verify() gives the same result as verify()', async () => {
  await using dataset = await openDataset(shards);
  expect(await dataset.verify()).toEqual(await verify(shards));
  expect((await failureOf(() => mixture.verify())) as Error).toBeInstanceOf(OptionError);
});
