import { openDataset } from '@shardtool/reader';
import type { Argv, CommandModule } from 'yargs';
import { type BenchResult, benchDataset } from '../bench.js';
import { formatCount, formatSize } from '../size.js';

const builder = (yargs: Argv) =>
  yargs
    .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
    .option('batch-size', { type: 'number', default: 256, describe: 'Samples in a batch' })
    .option('workers', { type: 'number', describe: 'Decode workers; by default one a core' })
    .option('epochs', { type: 'number', default: 1, describe: 'Epochs to go through' })
    .option('transform', { choices: ['train224', 'eval224', 'raw'] as const, default: 'train224' as const, describe: 'raw: not decoded' })
    .option('checksum', {
      choices: ['first-epoch', 'always', 'never'] as const,
      default: 'first-epoch' as const,
      describe: 'When the crc32 of images is checked',
    })
    .option('step-ms', { type: 'number', default: 0, describe: 'Stand for a training step of so many milliseconds a batch' })
    .option('cold', { type: 'boolean', default: false, describe: 'Drop the shards from the page cache first (Linux)' })
    .option('seed', { type: 'number', default: 0, describe: 'Of the shuffle' })
    .option('prefetch-batches', { type: 'number', default: 4, describe: 'Batches that are made ahead' })
    .option('on-bad-sample', {
      choices: ['raise', 'skip', 'substitute'] as const,
      default: 'raise' as const,
      describe: 'What becomes of samples that cannot be decoded',
    })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
    .example('$0 bench shards', 'Images a second, waiting, memory')
    .example('$0 bench shards --step-ms 87', 'Does a step of 87 ms ever wait?')
    .example('$0 bench shards --transform raw --cold', 'What the disk gives');

type BenchArguments = ReturnType<typeof builder> extends Argv<infer Given> ? Given : never;

export const benchCommand: CommandModule<object, BenchArguments> = {
  command: 'bench <dataset>',
  describe: 'Measure how fast batches come, and what bounds them',
  builder,
  handler: async ({ dataset: location, json, ...options }) => {
    const dataset = await openDataset(location);
    const result = await benchDataset(dataset, options);
    await dataset.close();
    if (json) console.log(JSON.stringify(result));
    else print(result);
  },
};

function print(result: BenchResult): void {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const share = (part: number) => `${Math.round(part * 100)} %`;
  const { boundBy } = result;
  console.log(
    [
      `${formatCount(Math.round(result.imagesPerSecond))} images/s over ${formatCount(result.images)} images in ${formatCount(result.batches)} batches of ${result.batchSize}, ${result.workers} workers, checksum ${result.checksum}`,
      `batch wait: p50 ${ms(result.batchWaitP50Ms)}, ${result.batches < 100 ? 'largest' : 'p99'} ${ms(result.batchWaitP99Ms)}; first batch ${ms(result.firstBatchMs)}`,
      `memory: ${formatSize(result.peakRssBytes)} at most, of which read buffers ${formatSize(result.readBufferPeakBytes)} and batch slots ${formatSize(result.slotBytes)}`,
      `main thread: ${result.mainThreadMicrosPerSample.toFixed(1)} microseconds a sample`,
      `time: ${share(boundBy.io)} waiting for reads, ${share(boundBy.decode)} for decoding, ${share(boundBy.consumer)} in the consumer`,
      ...(result.codec === null ? [] : [`JPEG by ${result.codec.name}: ${result.codec.reason}`]),
      ...(result.bad === 0 ? [] : [`${formatCount(result.bad)} bad samples: ${result.badKeys.slice(0, 10).join(', ')}`]),
      ...(result.warnings === 0 ? [] : [`${formatCount(result.warnings)} images decoded with warnings`]),
    ].join('\n'),
  );
}
