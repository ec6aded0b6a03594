import { CALL_OPTIONS, checkCallOptions, type OptionTable } from '@shardtool/base';
import { LOADER_OPTIONS } from '../loader/option-table.js';

const { worldSize, batchSize, globalBatchSize, lastBatch, seed, epoch, shuffle, shuffleUnit, streams } = LOADER_OPTIONS;
const { blockSamples, shuffleBufferSize, samplesPerEpoch, prefetchBatches, transform, aspectBuckets } = LOADER_OPTIONS;
const { classes, keys, where, weights, repeats, applyExifOrientation } = LOADER_OPTIONS;
const ORDER = { seed, epoch, shuffle, shuffleUnit, streams, blockSamples, shuffleBufferSize };
const BATCHES = { worldSize, batchSize, globalBatchSize, lastBatch };
const { signal } = CALL_OPTIONS;

/** Options of the calls that plan an epoch. Those of a loader mean the same as there. */
const PLAN_OPTIONS = {
  planDataset: {
    ...BATCHES,
    ...ORDER,
    ...{ classes, keys, where, weights, samplesPerEpoch, repeats, prefetchBatches, transform, signal },
    stepMs: {
      kind: 'own',
      type: 'number',
      must: 'is a number of milliseconds above 0',
      help: 'Duration of a training step',
    },
    bandwidth: { kind: 'bytes', from: 1, help: 'Bytes per second that a machine reads' },
    cacheSize: { kind: 'bytes', from: 0, help: 'Size of the cache on each machine' },
    machines: { kind: 'whole', from: 1, help: 'Number of machines that the ranks are divided among' },
  },
  planMixture: {
    ...BATCHES,
    ...ORDER,
    ...{ classes, keys, where, weights, samplesPerEpoch, prefetchBatches, transform, signal },
  },
  planAspectBuckets: {
    ...BATCHES,
    ...ORDER,
    ...{ classes, keys, where, samplesPerEpoch, aspectBuckets, applyExifOrientation, signal },
  },
} as const satisfies Readonly<Record<string, OptionTable>>;

/** The loader checks the values of these. */
const LATER = { transform: () => true, weights: () => true, aspectBuckets: () => true };
const OWN_CHECKS = { ...LATER, stepMs: (value: unknown) => typeof value === 'number' && value > 0 };

/** Checks names and values of the options of such a call. Throws OptionError. */
export function checkPlanOptions<Call extends keyof typeof PLAN_OPTIONS>(call: Call, options: unknown) {
  return checkCallOptions<(typeof PLAN_OPTIONS)[Call]>(call, PLAN_OPTIONS[call], options, OWN_CHECKS);
}
