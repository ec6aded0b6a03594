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
  handler: async ({ dataset: location, json, stepMs = 0, epochs, cold, transform, ...given }) => {
    const { benchDataset } = await import('../../bench/bench.js');
    const options = loaderOptions('bench', given);
    const steps = transform === 'raw' ? ('raw' as const) : await readTransform(transform, options.aspectBuckets);
    await using dataset = await openGiven(location, given);
    const loader = { ...options, transform: steps };
    const result = await benchDataset(dataset, { loader, epochs, cold, stepMs });
    await print(json ? JSON.stringify(result) : describe(result));
  },
});

/** What storage gave, and what was needed of it. */
function storageLine(storage: NonNullable<BenchResult['storage']>): string {
  const { requests, fetchedBytes, retries, hedges, cacheHitBytes } = storage;
  const all = fetchedBytes + cacheHitBytes;
  const share = all === 0 ? 0 : Math.round((cacheHitBytes / all) * 100);
  return (
    `storage: ${formatSize(storage.hadBytesPerSecond)}/s came, and ${formatSize(storage.neededBytesPerSecond)}/s were needed; ` +
    `${Math.round(storage.waitShare * 100)} % of the waiting was for it; ${formatSize(fetchedBytes)} in ` +
    `${countOf(requests, 'request')}, ${share} % of the bytes from the cache; ` +
    `${countOf(retries, 'retry', 'retries')}, ${formatCount(hedges)} asked for twice`
  );
}

function describe(result: BenchResult): string {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const percent = (part: number) => `${Math.round(part * 100)} %`;
  const { boundBy, batches, badKeys } = result;
  const lines = [
    `${formatCount(Math.round(result.imagesPerSecond))} images/s ${result.isFirstInRate ? 'with' : 'behind'} the first batch, over ${countOf(result.images, 'image')} in ` +
      `${countOf(batches, 'batch', 'batches')} of ${formatCount(result.batchSize)}; ${countOf(result.workers, 'worker')}, ` +
      `checksum ${result.checksum}`,
    `batch wait: p50 ${ms(result.batchWaitP50Ms)}, ${batches < 100 ? 'largest' : 'p99'} ${ms(result.batchWaitP99Ms)}; ` +
      `first batch ${ms(result.firstBatchMs)}`,
    `memory: ${formatSize(result.peakRssBytes)} at most, of which read buffers ${formatSize(result.readBufferPeakBytes)}; ` +
      `batch slots of ${formatSize(result.slotBytes)} are in it as far as they were filled`,
    `main thread: ${result.mainThreadMicrosPerSample.toFixed(1)} microseconds a sample`,
    `time: ${percent(boundBy.io)} waiting for reads, ${percent(boundBy.decode)} for decoding, ` +
      `${percent(boundBy.consumer)} in the consumer`,
  ];
  if (result.storage !== null) lines.push(storageLine(result.storage));
  if (result.codec !== null) lines.push(`JPEG by ${result.codec.name}: ${result.codec.reason}`);
  const { used, spliced, others } = result.cropIndex;
  if (used) {
    lines.push(`crop index: ${countOf(spliced, 'image')} decoded by it, ${formatCount(others)} from their begin on`);
  }
  if (result.bad > 0) {
    lines.push(
      `${countOf(result.bad, 'bad sample')}: ${escapeControls(badKeys.slice(0, 10).join(', '))}${badKeys.length > 10 ? ' ...' : ''}`,
    );
  }
  if (result.warnings > 0) lines.push(`${countOf(result.warnings, 'image')} decoded with warnings`);
  if (result.step !== null) lines.push(answerOn(result.step));
  lines.push(...result.advice);
  return lines.join('\n');
}
