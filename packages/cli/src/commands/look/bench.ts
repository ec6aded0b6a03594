import { escapeControls } from '@shardtool/base/text';
import { answerOn } from '../../bench/advice.js';
import type { BenchResult } from '../../bench/bench.js';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { milliseconds, wholeNumber } from '../../options/flags.js';
import { loaderFlags, loaderOptions } from '../../options/loader-flags.js';
import { withDefault } from '../../options/option-flags.js';
import { readTransform, TRANSFORM_FLAG } from '../../options/transform-flag.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

const FLAGS = loaderFlags('bench');

export const benchCommand = command({
  name: 'bench',
  summary: 'Measure how many images per second a loader delivers, and what limits it',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    ...FLAGS,
    'batch-size': withDefault(FLAGS['batch-size'], 256),
    transform: { ...TRANSFORM_FLAG, describe: `${TRANSFORM_FLAG.describe}; raw does not decode images` },
    epochs: {
      ...wholeNumber('--epochs', 'Number of epochs to read', { default: 1 }),
      group: 'Measurement',
      isCommon: true,
    },
    'step-ms': {
      ...milliseconds('--step-ms', 'Simulate a training step of this many milliseconds per batch'),
      isCommon: true,
    },
    cold: {
      type: 'boolean',
      default: false,
      group: 'Measurement',
      describe: 'Drop the shards from the page cache first (Linux)',
    },
    ...DATASET_FLAGS,
  },
  examples: [
    ['$0 bench shards', 'Images per second, and what limits them'],
    ['$0 bench shards --step-ms 87', 'Does a training step of 87 ms ever wait?'],
    ['$0 bench shards --transform raw --cold', 'Raw disk throughput'],
  ],
  handler: async ({ dataset: location, json, verbose, stepMs = 0, epochs, cold, transform, ...given }) => {
    const { benchDataset } = await import('../../bench/bench.js');
    const options = loaderOptions('bench', given);
    const steps = transform === 'raw' ? ('raw' as const) : await readTransform(transform, options.aspectBuckets);
    await using dataset = await openGiven(location, given);
    const { hasImages } = await import('@shardtool/reader');
    const isOfFields = transform === undefined && !(await hasImages(dataset, options));
    const loader = isOfFields ? options : { ...options, transform: steps };
    const result = await benchDataset(dataset, { loader, epochs, cold, stepMs });
    await print(json ? JSON.stringify(result) : describe(result, verbose));
  },
});

/** Achieved and required bandwidth of storage. */
function storageLine(storage: NonNullable<BenchResult['storage']>): string {
  const { requests, fetchedBytes, retries, hedges, cacheHitBytes } = storage;
  const all = fetchedBytes + cacheHitBytes;
  const share = all === 0 ? 0 : Math.round((cacheHitBytes / all) * 100);
  return (
    `storage: ${formatSize(storage.hadBytesPerSecond)}/s achieved, ${formatSize(storage.neededBytesPerSecond)}/s required; ` +
    `${Math.round(storage.waitShare * 100)} % of the waiting was for storage; ${formatSize(fetchedBytes)} in ` +
    `${countOf(requests, 'request')}, ${share} % of the bytes from the cache; ` +
    `${countOf(retries, 'retry', 'retries')}, ${countOf(hedges, 'request')} sent twice`
  );
}

/** Minimum number of batches for a reliable rate. */
const FEW_BATCHES = 3;

/** The conclusion and what to do about it; with `verbose` also the details. */
function describe(result: BenchResult, verbose: boolean): string {
  const { batches, images, advice, step, warnings } = result;
  const rate = `${formatCount(Math.round(result.imagesPerSecond))} images/s`;
  const first = result.isFirstInRate ? 'including the first batch' : 'excluding the first batch';
  const lines = [
    `${rate} (${first}): ${limitOf(result)}`,
    ...(batches < FEW_BATCHES
      ? [
          `This figure means little, because there ${batches === 1 ? 'was' : 'were'} only ${countOf(batches, 'batch', 'batches')}: use a smaller --batch-size, or more --epochs.`,
        ]
      : []),
    ...(step === null ? [] : [answerOn(step)]),
    ...advice,
    ...badLines(result),
    ...(warnings > 0 ? [`${countOf(warnings, 'image')} decoded with warnings`] : []),
    ...(verbose
      ? detailLines(result)
      : [
          `${countOf(images, 'image')} in ${countOf(batches, 'batch', 'batches')} of ${formatCount(result.batchSize)}, ` +
            `${countOf(result.workers, 'worker')}, ${formatSize(result.peakRssBytes)} of memory (--verbose shows details)`,
        ]),
  ];
  return lines.join('\n');
}

/** Describes what limits the rate. */
function limitOf({ boundBy: { io, decode, consumer }, step }: BenchResult): string {
  if (consumer >= Math.max(io, decode))
    return step === null ? 'batches come as fast as they are taken' : 'the training step is the limit';
  return decode >= io ? 'decoding is the limit' : 'reading is the limit';
}

function badLines({ bad, badKeys }: BenchResult): string[] {
  if (bad === 0) return [];
  const keys = badKeys.slice(0, 10).map((key) => escapeControls(key));
  return [`${countOf(bad, 'bad sample')}: ${keys.join(', ')}${badKeys.length > 10 ? ' ...' : ''}`];
}

function detailLines(result: BenchResult): string[] {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const percent = (part: number) => `${Math.round(part * 100)} %`;
  const { boundBy, batches, cropIndex } = result;
  return [
    `batches: ${countOf(result.images, 'image')} in ${countOf(batches, 'batch', 'batches')} of ${formatCount(result.batchSize)}; ` +
      `${countOf(result.workers, 'worker')}, checksum ${result.checksum}`,
    `batch wait: p50 ${ms(result.batchWaitP50Ms)}, ${batches < 100 ? 'largest' : 'p99'} ${ms(result.batchWaitP99Ms)}; ` +
      `first batch ${ms(result.firstBatchMs)}`,
    `memory: peak ${formatSize(result.peakRssBytes)}, including ` +
      (result.readBufferPeakBytes > 0 ? `read buffers of ${formatSize(result.readBufferPeakBytes)} and ` : '') +
      `the filled part of batch slots of ${formatSize(result.slotBytes)}`,
    `main thread: ${result.mainThreadMicrosPerSample.toFixed(1)} microseconds per sample`,
    `time: ${percent(boundBy.io)} waiting for reads, ${percent(boundBy.decode)} for decoding, ` +
      `${percent(boundBy.consumer)} in the consumer`,
    ...(result.storage === null ? [] : [storageLine(result.storage)]),
    ...(result.codec === null ? [] : [`JPEG by ${result.codec.name}: ${result.codec.reason}`]),
    ...(cropIndex.used
      ? [`crop index: ${countOf(cropIndex.spliced, 'image')} decoded with it, ${formatCount(cropIndex.others)} without`]
      : []),
  ];
}
