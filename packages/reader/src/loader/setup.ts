import { availableParallelism } from 'node:os';
import { imageFields, OptionError } from '@shardtool/format';
import { type CodecChoice, chooseCodec } from '../codec/select.js';
import type { Dataset } from '../dataset/dataset.js';
import { scratchBytesFor } from '../decoder.js';
import { type EpochPlan, planEpoch } from '../order/batches.js';
import { orderDefaults } from '../order/defaults.js';
import { resolveBatchSize, resolveRanks } from '../order/ranks.js';
import { slabCount } from '../order/slabs.js';
import { type LoaderState, takeUpState } from '../order/state.js';
import { unitOf } from '../order/units.js';
import { ORDER_VERSION } from '../order/words.js';
import { checkEpochSamples, type Selection, type Subset, selectSamples } from '../selection/selection.js';
import { checkMixing, type Mixing } from '../transform/mix.js';
import { type CompiledTransform, compileTransform, valueBytes } from '../transform/transform.js';
import { commonShape } from './common-shape.js';
import type { BatchOutput } from './deliver/finished-batch.js';
import type { CheckedOptions } from './options.js';
import type { UpcomingEpoch } from './read/least-bytes.js';
import { planReadBuffers, type ReadBufferPlan } from './read/read-buffers.js';
import type { Companion } from './ring/companions.js';
import { type MemoryPlan, planMemory } from './ring/slots.js';
import type { EngineOptions } from './work/engine.js';
import { type OwnStep, type OwnSteps, resolveStep } from './work/own-steps.js';

/** Everything about a loader that does not change from epoch to epoch. */
export interface LoaderSetup {
  readonly seed: number;
  /** Where the first iteration begins: an epoch, and the samples of it that were delivered, over all ranks. */
  readonly begin: { readonly epoch: number; readonly position: number };
  readonly batchSize: number;
  readonly globalBatch: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly streams: number;
  readonly blockSamples: number;
  readonly subset: Subset;
  readonly output: BatchOutput;
  readonly fields: readonly string[];
  readonly mixing: Mixing;
  readonly codec: CodecChoice | null;
  readonly memory: MemoryPlan;
  readonly readBuffers: ReadBufferPlan;
  readonly engine: EngineOptions;
  selection(epoch: number): Selection;
  plan(epoch: number, position: number): EpochPlan;
  /** The epochs from a place on, without end. */
  upcoming(epoch: number, position: number): Iterable<UpcomingEpoch>;
  stateAt(epoch: number, position: number): LoaderState;
}

/** Turns checked options into a setup; reads as much of the dataset as the options ask for. Throws OptionError. */
export async function setUp(dataset: Dataset, options: CheckedOptions): Promise<LoaderSetup> {
  const { rank, worldSize } = resolveRanks(options);
  const { batchSize, globalBatch } = resolveBatchSize(options, worldSize);
  const counts = Float64Array.from(dataset.shards, (shard) => shard.samples);
  const subset = await selectSamples(
    { classes: options.classes, keys: options.keys, where: options.where, weights: options.weights },
    { counts, classNames: dataset.classes, indexOf: (shard) => dataset.files.index(shard) },
  );
  checkEpochSamples(subset, options.epochSamples);

  const saved = options.state === undefined ? null : takeUp(dataset, subset, options);
  const shuffle = options.shuffle ?? saved?.shuffle ?? true;
  const meanSampleBytes = dataset.size === 0 ? 1 : dataset.bytes / dataset.size;
  const { streams, blockSamples } = saved ?? orderDefaults({ ...options, worldSize, meanSampleBytes, shuffle });
  const seed = saved?.seed ?? options.seed ?? 0;
  // Weights make passes of differing length: the unit is chosen once, or it could change on the way.
  const firstCounts = subset.draw({ seed, epoch: saved?.epoch ?? options.epoch ?? 0 }).counts;
  const unit = saved?.unit ?? options.shuffleUnit ?? unitOf(firstCounts, streams, blockSamples);
  const epochSamples = saved?.epochSamples ?? options.epochSamples;

  const transform = options.transform === 'raw' ? null : compileTransform(options.transform ?? []);
  const { output, decoder } = await outputOf(dataset, transform, options);
  const mixing = checkMixing(options.mix);
  const steps = stepsOf(options.steps);
  const companions = companionsOf(options, output);
  const fields = options.fields ?? fieldsOf(dataset, companions);
  if (steps.fields !== undefined) companions.push(...fields.map((field) => ({ field, kind: 'field' as const })));
  const hasSteps = Object.keys(steps).length > 0;
  if (output.kind !== 'pixels' && (hasSteps || mixing.length > 0))
    throw needsPixels(hasSteps ? 'steps' : 'mix', options);
  if (mixing.length > 0) checkMixable(mixing, transform!, companions);
  const rowBytes = output.kind === 'pixels' ? rowBytesOf(output) : 0;
  const memory = planMemory({
    slots: options.prefetchBatches,
    rows: batchSize,
    rowBytes,
    companionRowBytes: companions.map(({ kind }) =>
      kind === 'image' ? rowBytes : kind === 'mask' ? maskBytesOf(output) : 0,
    ),
    workers: options.workers ?? availableParallelism(),
    scratchBytes: transform === null ? 0 : scratchBytesFor(transform, options.maxPixels),
  });
  dataset.files.keepIndexes(Math.min(dataset.shards.length, 2 * (streams / worldSize) + 16));

  const selection = (epoch: number): Selection => subset.draw({ seed, epoch });
  const plan = (epoch: number, position: number): EpochPlan =>
    planEpoch({
      counts: selection(epoch).counts,
      seed,
      epoch,
      streams,
      blockSamples,
      unit,
      shuffle,
      rank,
      worldSize,
      globalBatch,
      lastBatch: options.lastBatch,
      position,
      epochSamples,
    });
  function* upcoming(epoch: number, position: number): Generator<UpcomingEpoch, undefined> {
    for (let e = epoch; ; e++) yield { plan: plan(e, e === epoch ? position : 0), selection: selection(e) };
  }
  const begin = beginOf(options.epoch, saved, plan);
  const planned = plan(begin.epoch, begin.position);
  const readBuffers = await planReadBuffers({
    dataset,
    unit,
    selection: selection(begin.epoch),
    upcoming: upcoming(begin.epoch, begin.position),
    all: subset.all,
    slabs: slabCount({ streams, worldSize, blockSamples, batchSize, prefetchBatches: options.prefetchBatches }),
    blockSamples,
    limitBytes: options.readBufferBytes,
  });
  return {
    seed,
    begin,
    batchSize,
    globalBatch,
    rank,
    worldSize,
    streams,
    blockSamples,
    subset,
    output,
    fields,
    mixing,
    codec: decoder === null ? null : await chooseCodec(),
    memory,
    readBuffers,
    engine: {
      plan: memory,
      rows: batchSize,
      arenaBytes: readBuffers.reservedBytes,
      decoder: decoder === null ? null : { ...decoder, seed },
      list: output.kind === 'list',
      companions,
      steps,
      mixing,
      shardPaths: isUncompressedOnly(dataset, output, options, companions.length + fields.length)
        ? dataset.files.files.map(({ path }) => path)
        : [],
      slotFile: options.slotFile,
    },
    selection,
    plan,
    upcoming,
    stateAt: (atEpoch, position) => ({
      version: ORDER_VERSION,
      dataset: dataset.identity,
      selection: subset.identity,
      seed,
      epoch: atEpoch,
      streams,
      blockSamples,
      unit,
      shuffle,
      epochSamples: epochSamples ?? null,
      globalBatch,
      lastBatch: planned.lastBatch,
      position,
    }),
  };
}

/** More images and masks, where the batch has a place for them. */
function companionsOf(options: CheckedOptions, output: BatchOutput): Companion[] {
  const { moreImages, masks } = options;
  const companions: Companion[] = [
    ...moreImages.map((field) => ({ field, kind: 'image' as const })),
    ...masks.map((field) => ({ field, kind: 'mask' as const })),
  ];
  const twice = companions.find(({ field }, i) => companions.findIndex((other) => other.field === field) < i);
  if (twice !== undefined)
    throw new OptionError({}, `The field "${twice.field}" is named twice in moreImages and masks.`);
  if (companions.length === 0 || output.kind === 'pixels') return companions;
  throw needsPixels(masks.length > 0 ? 'masks' : 'moreImages', options);
}

function needsPixels(option: string, { transform }: CheckedOptions): OptionError {
  const other = transform === 'raw' ? "transform 'raw'" : "collate 'list'";
  return new OptionError(
    {},
    `The option ${option} is for batches whose images are decoded and stacked: leave out ${option}, or ${other}.`,
  );
}

/** The steps that there are, with whole paths. */
function stepsOf(steps: CheckedOptions['steps']): OwnSteps {
  const resolved = Object.entries(steps).flatMap(([name, step]) =>
    step === undefined ? [] : [[name, resolveStep(step as OwnStep)] as const],
  );
  return Object.fromEntries(resolved);
}

function checkMixable(mixing: Mixing, { dtype }: CompiledTransform, companions: readonly Companion[]): void {
  if (companions.some(({ kind }) => kind !== 'field')) {
    throw new OptionError({}, 'mix takes images and labels: leave out moreImages and masks, or mix.');
  }
  if (dtype === 'float16' && mixing.some(({ name }) => name === 'mixup')) {
    throw new OptionError({}, 'mixup takes uint8 or float32 images: let the transform end with one of them.');
  }
}

/** The fields that come as values, unless others are asked for. */
function fieldsOf(dataset: Dataset, companions: readonly Companion[]): string[] {
  const pixels = new Set([...imageFields(dataset.fields), ...companions.map(({ field }) => field), 'cls']);
  return dataset.fields.filter((field) => !pixels.has(field));
}

/**
 * Whether rows are made of uncompressed images and of nothing else: then workers can read just the crops, without any bytes in
 * between.
 */
function isUncompressedOnly(dataset: Dataset, output: BatchOutput, options: CheckedOptions, others: number): boolean {
  const { image, steps } = options;
  const images = image === undefined ? imageFields(dataset.fields) : [image];
  const isPlain = output.kind === 'pixels' && steps.fields === undefined && steps.pixels === undefined && others === 0;
  return isPlain && images.length === 1 && images[0] === 'npy';
}

function maskBytesOf(output: BatchOutput): number {
  if (output.kind !== 'pixels') return 0;
  const { width, height } = output.size;
  return width * height;
}

function takeUp(dataset: Dataset, subset: Subset, options: CheckedOptions): LoaderState {
  return takeUpState(options.state, {
    dataset: dataset.identity,
    selection: subset.identity,
    shuffle: options.shuffle,
    epochSamples: options.epochSamples,
    seed: options.seed,
    streams: options.streams,
    blockSamples: options.blockSamples,
    unit: options.shuffleUnit,
  });
}

async function outputOf(
  dataset: Dataset,
  transform: CompiledTransform | null,
  options: CheckedOptions,
): Promise<{ output: BatchOutput; decoder: Omit<NonNullable<EngineOptions['decoder']>, 'seed'> | null }> {
  if (transform === null) return { output: { kind: 'raw' }, decoder: null };
  const decoder = {
    transform,
    maxPixels: options.maxPixels,
    applyExifOrientation: options.applyExifOrientation,
  };
  if (options.collate === 'list') return { output: { kind: 'list' }, decoder };
  const size = transform.outputShape ?? (await commonShape(dataset, transform, options));
  const shape =
    transform.layout === 'nhwc' ? ([size.height, size.width, 3] as const) : ([3, size.height, size.width] as const);
  return { output: { kind: 'pixels', size, shape, dtype: transform.dtype }, decoder: { ...decoder, outputSize: size } };
}

function rowBytesOf(output: Extract<BatchOutput, { kind: 'pixels' }>): number {
  return output.shape[0] * output.shape[1] * output.shape[2] * valueBytes(output.dtype);
}

/** The state's place; behind the last batch of an epoch it is the start of the next one. */
function beginOf(
  epoch: number | undefined,
  saved: LoaderState | null,
  plan: (epoch: number, position: number) => EpochPlan,
): LoaderSetup['begin'] {
  if (saved === null || (epoch !== undefined && epoch !== saved.epoch)) return { epoch: epoch ?? 0, position: 0 };
  const isOver = saved.position > 0 && plan(saved.epoch, saved.position).batches === 0;
  return isOver ? { epoch: saved.epoch + 1, position: 0 } : { epoch: saved.epoch, position: saved.position };
}
