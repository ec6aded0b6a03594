import { availableCores } from '@shardtool/base';
import type { BucketsReport, MixtureReport, PlanReport, StorageEpoch } from '@shardtool/reader';
import { adviceOnPlan } from '../../bench/plan-advice.js';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { milliseconds, size, wholeNumber } from '../../options/flags.js';
import { loaderFlags, loaderOptions } from '../../options/loader-flags.js';
import { withDefault } from '../../options/option-flags.js';
import { readTransform, TRANSFORM_FLAG } from '../../options/transform-flag.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

const FLAGS = loaderFlags('plan');

export const planCommand = command({
  name: 'plan',
  summary: 'Predict batches, memory, shuffle quality and storage of an epoch, without reading images',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    ...FLAGS,
    // There are no ranks yet when a plan is made.
    'world-size': withDefault(FLAGS['world-size'], 1),
    transform: TRANSFORM_FLAG,
    'step-ms': { ...milliseconds('--step-ms', 'Duration of a training step'), isCommon: true },
    bandwidth: {
      ...size('--bandwidth', 'Bytes per second from storage to each machine; tells whether steps wait for storage'),
      group: 'Measurement',
      isCommon: true,
    },
    'cache-size': {
      ...size('--cache-size', 'Size of the cache on each machine. Default: no cache'),
      group: 'Measurement',
    },
    machines: {
      ...wholeNumber('--machines', 'Number of machines that share the ranks', { default: 1 }),
      group: 'Measurement',
    },
    ...DATASET_FLAGS,
  },
  examples: [
    ['$0 plan shards --world-size 8 --batch-size 128', 'Batches, memory and shuffle quality on 8 GPUs'],
    ['$0 plan shards --batch-size 256 --step-ms 87', 'What a step of 87 ms needs'],
    ['$0 plan s3://bucket/shards --step-ms 87 --bandwidth 200MB --cache-size 500GB', 'Will it wait for storage?'],
  ],
  handler: async ({
    dataset: location,
    json,
    verbose,
    stepMs,
    bandwidth,
    cacheSize,
    machines,
    transform: named,
    ...given
  }) => {
    checkStorage({ stepMs, bandwidth, cacheSize, machines, worldSize: given.worldSize });
    const { planDataset, planAspectBuckets, planMixture } = await import('@shardtool/reader');
    const { aspectBuckets: buckets, ...asked } = loaderOptions('plan', given);
    const options = { ...asked, transform: await readTransform(named, buckets) };
    await using dataset = await openGiven(location, given);
    if (buckets !== undefined) {
      const { repeats, ...ofBuckets } = asked;
      refuseForBuckets({ stepMs, repeats });
      const report = await planAspectBuckets(dataset, { ...ofBuckets, aspectBuckets: buckets });
      await print(json ? JSON.stringify(report) : describeBuckets(report));
      return;
    }
    if (dataset.mixture !== null) {
      refuseForMixture({ stepMs, bandwidth, cacheSize, repeats: asked.repeats });
      const mixed = await planMixture(dataset, options);
      await print(json ? JSON.stringify(mixed) : describeMixture(mixed));
      return;
    }
    const report = await planDataset(dataset, { ...options, stepMs, bandwidth, cacheSize, machines });
    const { isRemote } = await import('@shardtool/storage');
    const advice = adviceOnPlan({ report, isRemote: isRemote(location), cores: availableCores() });
    await print(json ? JSON.stringify({ ...report, advice }) : [describe(report, verbose), ...advice].join('\n'));
  },
});

/** The requirements of storage are shown if a step time or a bandwidth is given. */
function checkStorage(given: {
  readonly stepMs: number | undefined;
  readonly bandwidth: number | undefined;
  readonly cacheSize: number | undefined;
  readonly machines: number;
  readonly worldSize: number;
}): void {
  const { stepMs, bandwidth, cacheSize, machines, worldSize } = given;
  if (bandwidth !== undefined && stepMs === undefined) {
    throw new UsageError(
      '--bandwidth predicts whether training steps wait for data, so it needs --step-ms, the duration of a step.',
    );
  }
  if (bandwidth === undefined && (cacheSize !== undefined || machines > 1)) {
    throw new UsageError('--cache-size and --machines need --bandwidth, the rate at which the storage delivers data.');
  }
  if (worldSize % machines !== 0) {
    throw new UsageError(
      `${countOf(worldSize, 'rank')} cannot be divided evenly among ${machines} machines: change --world-size or --machines.`,
    );
  }
}

function refuseForBuckets(given: { readonly stepMs: number | undefined; readonly repeats: number | undefined }): void {
  const flag = given.stepMs !== undefined ? '--step-ms' : given.repeats !== undefined ? '--repeats' : null;
  if (flag === null) return;
  throw new UsageError(`${flag} is for batches of one size: remove ${flag} or --aspect-buckets.`);
}

function describeBuckets(report: BucketsReport): string {
  const { sizes, leftOut, waiting } = report;
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
  const name = ({ width, height }: { width: number; height: number }) => `${width}x${height}`;
  return [
    `${countOf(report.samples, 'sample')} per epoch in batches of ${countOf(sizes.length, 'size')} (width x height); ` +
      `${countOf(report.worldSize, 'rank')} with ${countOf(report.batches, 'batch', 'batches')} of ${formatCount(report.batchSize)}`,
    ...sizes.map(
      (size) =>
        `  ${name(size).padEnd(9)} ${countOf(size.samples, 'sample')} (${percent(size.share)}), ` +
        `${percent(size.croppedAway)} of their pixels cropped away`,
    ),
    ...(leftOut.length === 0
      ? []
      : [
          `not used, because they have less than a thousandth of the samples: ${leftOut.map((size) => `${name(size)} (${formatCount(size.samples)})`).join(', ')}`,
        ]),
    `waiting for their batch on a rank: ${countOf(Math.round(waiting.mean), 'sample')} on average, ${formatCount(waiting.most)} at most, ` +
      `about ${formatSize(waiting.mostBytes)}`,
    `${percent(report.handedOver)} of the rows come from another rank's streams; ${countOf(report.unfilled, 'row')} of the last ` +
      `batches ${report.lastBatch === 'drop' ? 'are dropped' : report.lastBatch === 'pad' ? 'are padding' : 'are missing'}`,
  ].join('\n');
}

/** Throws for options that are not available for a mixture as a whole. */
function refuseForMixture(given: Readonly<Record<string, unknown>>): void {
  const [name] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (name === undefined) return;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new UsageError(`--${flag} is for a single dataset, but this is a mixture: plan each of its datasets instead.`);
}

function describeMixture(report: MixtureReport): string {
  const { datasets, memory, group, window } = report;
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
  return [
    `${countOf(report.samples, 'sample')} per epoch from ${countOf(datasets.length, 'dataset')}; ` +
      `${countOf(report.worldSize, 'rank')} with ${countOf(report.batches, 'batch', 'batches')} of ${formatCount(report.batchSize)}`,
    ...datasets.map(
      (one) =>
        `  ${one.name}: ${formatCount(one.samples)} of ${formatCount(one.size)} samples (${one.passes.toFixed(3)} passes), ` +
        `${percent(one.share)}, ${one.rowsPerBatch.toFixed(1)} rows of a batch; ${countOf(one.streams, 'stream')}, blocks of ` +
        `${formatCount(one.blockSamples)}, units of a ${one.unit}`,
    ),
    `groups of ${countOf(group, 'sample')} of one dataset, ${formatCount(window)} shuffled together`,
    `a rank holds about ${formatSize(memory.totalBytes)}: read buffers ${formatSize(memory.readBytes)}, batch slots ${formatSize(memory.slotBytes)}`,
  ].join('\n');
}

/** The conclusion for the user; with `verbose` also the details of the order. */
function describe(report: PlanReport, verbose: boolean): string {
  const { order, reads, memory, shuffleQuality, step } = report;
  const score = (value: number | null) => (value === null ? 'unknown' : value.toFixed(2));
  const { shard, class: cls, repeat, sampledBatches } = shuffleQuality;
  const batches =
    report.worldSize === 1
      ? countOf(report.batches, 'batch', 'batches')
      : `${countOf(report.batches, 'batch', 'batches')} on each of ${formatCount(report.worldSize)} ranks`;
  const ends = [
    ...(report.paddedRows > 0 ? [`${countOf(report.paddedRows, 'row')} of padding`] : []),
    ...(report.droppedSamples > 0 ? [`${countOf(report.droppedSamples, 'sample')} dropped`] : []),
  ];
  const lines = [
    `An epoch has ${countOf(report.samples, 'sample')} from ${countOf(report.shards, 'shard')}: ${batches} of ${formatCount(report.batchSize)}` +
      `${ends.length === 0 ? '' : `, ${ends.join(', ')}`}`,
    `shuffle quality: ${verdictOf(cls ?? shard)}`,
    `memory per rank: ${formatSize(memory.totalBytes)} at most`,
  ];
  if (verbose) {
    lines.push(
      `  shuffle quality (1.00 = perfect): across shards ${score(shard)}, across classes ${score(cls)}, between epochs ` +
        `${score(repeat)}, from ${countOf(sampledBatches, 'batch', 'batches')}`,
      `  order: ${countOf(order.streams, 'stream')}, blocks of ${formatCount(order.blockSamples)}, shuffle unit ${order.unit}, shuffle ` +
        `buffer of ${countOf(order.shuffleBufferSize, 'sample')}`,
      `  reads per rank and epoch: ${formatCount(reads.count)} of ${formatSize(reads.meanBytes)} (largest ${formatSize(reads.largestBytes)})`,
      `  memory: read buffers ${formatSize(memory.readBytes)} (images alone on a local disk need none), batch slots ${formatSize(memory.slotBytes)}`,
    );
  }
  if (step !== null) {
    lines.push(
      `a step of ${step.stepMs} ms needs ${formatCount(Math.round(step.images))} images/s and ${formatSize(step.bytes)}/s ` +
        `${step.reads === 0 ? 'from memory, after everything was read once' : `in ${readRate(step.reads)} reads/s`}; with single files it would need ${formatCount(Math.round(step.fileReads))} file reads/s`,
    );
  }
  if (report.storage !== null) {
    const { machines, cacheSize, bandwidth, first, later } = report.storage;
    const cache = cacheSize === 0 ? 'no cache' : `a cache of ${formatSize(cacheSize)}`;
    lines.push(
      `storage: each of ${countOf(machines, 'machine')} with ${formatSize(bandwidth)}/s and ${cache}: ` +
        `the first epoch ${epochLine(first)}; a later one ${epochLine(later)}`,
    );
  }
  if (!verbose) lines.push('--verbose shows order, reads and scores.');
  return lines.join('\n');
}

/** Up to this multiple of a perfect shuffle, training does not notice a difference. */
const GOOD = 1.25;
const FAIR = 2;

/** A score of shuffle quality in words; it is a multiple of that of a perfect shuffle. */
function verdictOf(score: number | null): string {
  if (score === null) return 'unknown';
  if (score <= GOOD) return 'as good as a full shuffle';
  const times = `two samples of a batch are ${score.toFixed(1)} times as often from one class or shard as by chance`;
  return `${score <= FAIR ? 'fair' : 'poor'}: ${times}`;
}

/** A rate below 0.1 has a figure, too: it is not 0. */
function readRate(reads: number): string {
  return reads < 0.1 ? reads.toPrecision(1) : reads.toFixed(1);
}

function epochLine({ fetchedBytes, bytesPerSecond, waitShare }: StorageEpoch): string {
  const waits = waitShare === 0 ? 'does not wait' : `waits ${Math.ceil(waitShare * 100)} % of its time`;
  return `fetches ${formatSize(fetchedBytes)}, needs ${formatSize(bytesPerSecond)}/s and ${waits}`;
}
