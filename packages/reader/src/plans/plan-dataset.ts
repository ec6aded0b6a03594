import { inTurn, OptionError, total, watchedCall } from '@shardtool/base';
import { checkDataset } from '../dataset/check-dataset.js';
import { sampleBytesOf } from '../dataset/shards/shard-file.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import { checkOptions, type LoaderOptions } from '../loader/options.js';
import { mixtureOf } from '../mixture/settings.js';
import { orderDefaults } from '../order/defaults.js';
import { resolveBatchSize } from '../order/ranks.js';
import { type PlanReport, planReport } from '../order/report/report.js';
import type { ShuffleQualityOptions } from '../order/report/shuffle-quality.js';
import { selectableOf } from '../selection/selectable.js';
import { type Selection, type SelectionRequest, selectSamples } from '../selection/selection.js';
import { compileTransform, type TransformInput } from '../transform/transform.js';
import { checkPlanOptions } from './plan-options.js';

/** Number of shards whose labels are read at a time. */
const INDEXES_AT_ONCE = 8;

/** Options of {@link planDataset}. Those that a loader also has mean the same. */
export interface DatasetPlanOptions
  extends SelectionRequest,
    Pick<
      LoaderOptions,
      | 'worldSize'
      | 'batchSize'
      | 'globalBatchSize'
      | 'lastBatch'
      | 'prefetchBatches'
      | 'seed'
      | 'epoch'
      | 'streams'
      | 'blockSamples'
      | 'shuffleBufferSize'
      | 'shuffleUnit'
      | 'shuffle'
      | 'samplesPerEpoch'
      | 'repeats'
      | 'signal'
    > {
  readonly transform?: TransformInput | undefined;
  /** Duration of a training step, in milliseconds. */
  readonly stepMs?: number | undefined;
  /**
   * Number of bytes per second that a machine reads from the storage, or a text such as `200MB`. With `stepMs`, the plan
   * predicts whether training will wait.
   */
  readonly bandwidth?: number | string | undefined;
  /** Size of the cache on each machine, in bytes or as a text such as `500GB`. Default: 0, no cache. */
  readonly cacheSize?: number | string | undefined;
  /** Number of machines, among which the ranks are divided evenly. Default: 1. */
  readonly machines?: number | undefined;
}

/**
 * Estimates the cost of an epoch for each rank, and the shuffle quality. Reads the indexes and no shard. Throws
 * OptionError, also for a mixture.
 */
export async function planDataset(dataset: StoredDataset, options: DatasetPlanOptions = {}): Promise<PlanReport> {
  checkDataset('planDataset', dataset);
  const { bandwidth, cacheSize } = checkPlanOptions('planDataset', options);
  const { stepMs, bandwidth: _, cacheSize: __, machines, ...ofLoader } = options;
  checkOptions(ofLoader as LoaderOptions);
  if (mixtureOf(dataset) !== null) {
    throw new OptionError({}, `${dataset.location} is a mixture: use planMixture.`);
  }
  return watchedCall(options, () => plan(dataset, ofLoader, { stepMs, bandwidth, cacheSize, machines }));
}

/** What the plan compares the epoch with, in milliseconds and bytes. */
interface Setting {
  readonly stepMs: number | undefined;
  readonly bandwidth: number | undefined;
  readonly cacheSize: number | undefined;
  readonly machines: number | undefined;
}

async function plan(
  dataset: StoredDataset,
  options: Omit<DatasetPlanOptions, keyof Setting>,
  setting: Setting,
): Promise<PlanReport> {
  const { worldSize = 1, transform = 'train224', shuffle = true, seed = 0, epoch = 0 } = options;
  const { globalBatch } = resolveBatchSize(options, worldSize);
  const { classes, keys, where, weights } = options;
  const subset = await selectSamples({ classes, keys, where, weights }, selectableOf(dataset, { where }), {
    epochSamples: options.samplesPerEpoch,
  });
  const selection = subset.draw({ seed, epoch });
  const { meanSampleBytes } = dataset;
  const shape = compileTransform(transform).outputShape ?? { width: 224, height: 224 };
  return planReport({
    counts: selection.counts,
    shardBytes: Float64Array.from(dataset.shards, (file, shard) =>
      file.samples === 0 ? 0 : (sampleBytesOf(file) / file.samples) * selection.counts[shard]!,
    ),
    seed,
    epoch,
    shuffle,
    ...orderDefaults({ ...options, streams: options.streams, worldSize, meanSampleBytes, shuffle }),
    unit: options.shuffleUnit,
    worldSize,
    globalBatch,
    lastBatch: options.lastBatch,
    epochSamples: options.samplesPerEpoch,
    repeats: options.repeats,
    prefetchBatches: options.prefetchBatches ?? 4,
    rowBytes: shape.width * shape.height * 3,
    classes: await classesInOrder(dataset, selection),
    ...setting,
  });
}

/** The class of each selected sample, by its number in the order. Undefined if the dataset has no classes. */
async function classesInOrder(dataset: StoredDataset, selection: Selection): Promise<ShuffleQualityOptions['classes']> {
  if (dataset.classSamples.length === 0) return undefined;
  const samples = total(selection.counts);
  const of = new Int32Array(samples);
  const counts = new Float64Array(dataset.classSamples.length);
  let number = 0;
  const chosen = [...dataset.shards.keys()].filter((shard) => selection.counts[shard]! > 0);
  const labels = inTurn(chosen, INDEXES_AT_ONCE, async (shard) => {
    return { shard, cls: (await dataset.shards[shard]!.loadParts(['cls'])).cls };
  });
  for await (const { shard, cls } of labels) {
    const rows = selection.rows(shard);
    for (let i = 0; i < selection.counts[shard]!; i++) {
      const sampleClass = cls[rows === null ? i : rows[i]!]!;
      of[number++] = sampleClass;
      if (sampleClass >= 0) counts[sampleClass]!++;
    }
  }
  return { of: (at: number) => of[at]!, counts };
}
