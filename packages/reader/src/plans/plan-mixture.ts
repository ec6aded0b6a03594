import { OptionError, watchedCall } from '@shardtool/base';
import { checkDataset } from '../dataset/check-dataset.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import { checkOptions, type LoaderOptions } from '../loader/options.js';
import { settleMixture } from '../loader/setup/order/mixture-order.js';
import { loaderOrder } from '../loader/setup/order/order.js';
import { type MixtureSettings, mixtureOf } from '../mixture/settings.js';
import type { LastBatch } from '../order/batches.js';
import type { Unit } from '../order/units.js';
import { compileTransform, type TransformInput } from '../transform/transform.js';
import { checkPlanOptions } from './plan-options.js';

/** Options of {@link planMixture}, which mean the same as for a loader. */
export interface MixturePlanOptions
  extends Pick<
    LoaderOptions,
    | 'worldSize'
    | 'batchSize'
    | 'globalBatchSize'
    | 'lastBatch'
    | 'prefetchBatches'
    | 'seed'
    | 'epoch'
    | 'blockSamples'
    | 'shuffleBufferSize'
    | 'shuffle'
    | 'shuffleUnit'
    | 'streams'
    | 'samplesPerEpoch'
    | 'classes'
    | 'keys'
    | 'where'
    | 'weights'
    | 'signal'
  > {
  readonly transform?: TransformInput | undefined;
}

/** Estimates for an epoch of a mixture for one rank, before anything is read. Sizes are in bytes. */
export interface MixtureReport {
  /** Number of samples of an epoch, over all ranks. */
  readonly samples: number;
  readonly worldSize: number;
  readonly globalBatch: number;
  readonly batchSize: number;
  /** Batches of each rank. */
  readonly batches: number;
  readonly lastBatch: LastBatch;
  /** Number of consecutive samples of a dataset, and number of such groups that are shuffled together. */
  readonly group: number;
  readonly window: number;
  readonly datasets: readonly {
    readonly name: string;
    /** Number of selected samples, and number of samples in an epoch, which may be several passes. */
    readonly size: number;
    readonly samples: number;
    readonly passes: number;
    /** Share of the epoch, 0 to 1, and mean number of rows in a batch of all ranks. */
    readonly share: number;
    readonly rowsPerBatch: number;
    readonly streams: number;
    readonly blockSamples: number;
    readonly unit: Unit;
  }[];
  /** Memory of one rank, in bytes. */
  readonly memory: { readonly readBytes: number; readonly slotBytes: number; readonly totalBytes: number };
}

/**
 * Estimates the cost of an epoch of a mixture for each rank. Reads indexes only if samples are selected. Throws {@link
 * OptionError}.
 */
export async function planMixture(dataset: StoredDataset, options: MixturePlanOptions = {}): Promise<MixtureReport> {
  checkDataset('planMixture', dataset);
  checkPlanOptions('planMixture', options);
  const mixture = mixtureOf(dataset);
  if (mixture === null) throw new OptionError({}, `${dataset.location} is a single dataset: use planDataset.`);
  return watchedCall(options, () => plan(dataset, mixture, options));
}

async function plan(
  dataset: StoredDataset,
  mixture: MixtureSettings,
  options: MixturePlanOptions,
): Promise<MixtureReport> {
  const { worldSize = 1, transform = 'train224', prefetchBatches = 4, ...others } = options;
  const settled = await settleMixture(dataset, mixture, checkOptions({ ...others, worldSize, rank: 0 }));
  const order = loaderOrder(dataset, settled);
  const place = { epoch: options.epoch ?? 0, position: 0 };
  const plan = order.plan(place);
  const { group, window } = settled.stateAt(place, plan.lastBatch);
  const shape = compileTransform(transform).outputShape ?? { width: 224, height: 224 };
  const slotBytes = prefetchBatches * order.batchSize * shape.width * shape.height * 3;
  const held = order.held(prefetchBatches).samples;
  const readBytes = order.unit === 'sample' ? dataset.sampleBytes : held * dataset.meanSampleBytes;
  return {
    samples: plan.samples,
    worldSize,
    globalBatch: order.globalBatch,
    batchSize: order.batchSize,
    batches: plan.batches,
    lastBatch: plan.lastBatch,
    group,
    window,
    datasets: settled.sources.map(({ passSamples, samples, streams, blockSamples, unit }, d) => ({
      name: mixture.datasets[d]!.name,
      size: passSamples,
      samples,
      passes: passSamples === 0 ? 0 : samples / passSamples,
      share: samples / plan.samples,
      rowsPerBatch: (order.globalBatch * samples) / plan.samples,
      streams,
      blockSamples,
      unit,
    })),
    memory: { readBytes, slotBytes, totalBytes: readBytes + slotBytes },
  };
}
