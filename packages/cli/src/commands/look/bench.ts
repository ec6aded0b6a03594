import { visible } from '@shardtool/format/visible';
import type { BenchResult } from '../../bench/bench.js';
import { command } from '../../command.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { milliseconds, size, wholeNumber } from '../../options/flags.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

export const benchCommand = command({
  name: 'bench',
  positionals: '<dataset>',
  describe: 'Measure how fast batches come, and what bounds them',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .options(DATASET_FLAGS)
      .option('batch-size', wholeNumber('--batch-size', 'Samples in a batch', { default: 256 }))
      .option('workers', wholeNumber('--workers', 'Decode workers; by default one a core', { to: 1024 }))
      .option('epochs', wholeNumber('--epochs', 'Epochs to go through', { default: 1 }))
      .option('transform', {
        choices: ['train224', 'eval224', 'raw'] as const,
        default: 'train224' as const,
        describe: 'What becomes of the images; raw: they are not decoded',
      })
      .option('decode-mode', {
        choices: ['exact', 'scaled', 'fast'] as const,
        default: 'scaled' as const,
        describe: 'How large JPEGs are decoded: whole, or smaller where twice, or once, the size is left',
      })
      .option('checksum', {
        choices: ['first-epoch', 'always', 'never'] as const,
        default: 'first-epoch' as const,
        describe: 'When the crc32 of images is checked',
      })
      .option('step-ms', milliseconds('--step-ms', 'Stand for a training step of so many milliseconds a batch'))
      .option('cold', {
        type: 'boolean',
        default: false,
        describe: 'Drop the shards from the page cache first (Linux)',
      })
      .option('seed', wholeNumber('--seed', 'Of the shuffle', { from: 0, default: 0 }))
      .option('prefetch-batches', wholeNumber('--prefetch-batches', 'Batches that are made ahead', { default: 4 }))
      .option('on-bad-sample', {
        choices: ['raise', 'skip', 'substitute'] as const,
        default: 'raise' as const,
        describe: 'What becomes of samples that cannot be decoded',
      })
      .option('crop-index', {
        type: 'boolean',
        defaultDescription: 'where reads are quick',
        describe: 'Decode crops by the crop indexes of shards that have them',
      })
      .option('cache', { type: 'string', requiresArg: true, describe: 'Folder that keeps what is fetched' })
      .option('cache-size', size('--cache-size', 'Most bytes in the cache; by default half of the free disk'))
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
      .example('$0 bench shards', 'Images a second, waiting, memory')
      .example('$0 bench shards --step-ms 87', 'Does a step of 87 ms ever wait?')
      .example('$0 bench shards --transform raw --cold', 'What the disk gives'),
  handler: async ({ dataset: location, json, stepMs = 0, ...options }) => {
    const { benchDataset } = await import('../../bench/bench.js');
    const dataset = await openGiven(location, options);
    const result = await benchDataset(dataset, { ...options, stepMs });
    await dataset.close();
    await print(json ? JSON.stringify(result) : describe(result));
  },
});

/** What storage gave, and what was needed of it. */
function storageLine(storage: NonNullable<BenchResult['storage']>, { seconds }: BenchResult): string {
  const { requests, fetchedBytes, retries, hedges, cacheHitBytes } = storage;
  const all = fetchedBytes + cacheHitBytes;
  const share = all === 0 ? 0 : Math.round((cacheHitBytes / all) * 100);
  return (
    `storage: ${formatSize(fetchedBytes)} in ${countOf(requests, 'request')}, ${formatSize(fetchedBytes / seconds)}/s; ` +
    `${share} % of the bytes from the cache; ${countOf(retries, 'retry', 'retries')}, ${formatCount(hedges)} asked for twice`
  );
}

function describe(result: BenchResult): string {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const percent = (part: number) => `${Math.round(part * 100)} %`;
  const { boundBy, batches, badKeys } = result;
  const lines = [
    `${formatCount(Math.round(result.imagesPerSecond))} images/s over ${countOf(result.images, 'image')} in ` +
      `${countOf(batches, 'batch', 'batches')} of ${formatCount(result.batchSize)}; ${countOf(result.workers, 'worker')}, ` +
      `checksum ${result.checksum}`,
    `batch wait: p50 ${ms(result.batchWaitP50Ms)}, ${batches < 100 ? 'largest' : 'p99'} ${ms(result.batchWaitP99Ms)}; ` +
      `first batch ${ms(result.firstBatchMs)}`,
    `memory: ${formatSize(result.peakRssBytes)} at most, of which read buffers ${formatSize(result.readBufferPeakBytes)} ` +
      `and batch slots ${formatSize(result.slotBytes)}`,
    `main thread: ${result.mainThreadMicrosPerSample.toFixed(1)} microseconds a sample`,
    `time: ${percent(boundBy.io)} waiting for reads, ${percent(boundBy.decode)} for decoding, ` +
      `${percent(boundBy.consumer)} in the consumer`,
  ];
  if (result.storage !== null) lines.push(storageLine(result.storage, result));
  if (result.codec !== null) lines.push(`JPEG by ${result.codec.name}: ${result.codec.reason}`);
  const { used, spliced, others } = result.cropIndex;
  if (used) {
    lines.push(`crop index: ${countOf(spliced, 'image')} decoded by it, ${formatCount(others)} from their begin on`);
  }
  if (result.bad > 0) {
    lines.push(
      `${countOf(result.bad, 'bad sample')}: ${visible(badKeys.slice(0, 10).join(', '))}${badKeys.length > 10 ? ' ...' : ''}`,
    );
  }
  if (result.warnings > 0) lines.push(`${countOf(result.warnings, 'image')} decoded with warnings`);
  return lines.join('\n');
}
