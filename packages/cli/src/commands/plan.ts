import { openDataset, type PlanReport, planOf } from '@shardtool/reader';
import type { Argv, CommandModule } from 'yargs';
import { formatCount, formatSize } from '../size.js';

const builder = (yargs: Argv) =>
  yargs
    .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
    .option('world-size', { type: 'number', default: 1, describe: 'Ranks (GPUs)' })
    .option('batch-size', { type: 'number', default: 64, describe: 'Samples in a batch of one rank' })
    .option('last-batch', { choices: ['pad', 'drop', 'partial'] as const, describe: 'What becomes of an incomplete last batch' })
    .option('streams', { type: 'number', describe: 'Streams that are read at once' })
    .option('shuffle-buffer-size', { type: 'number', describe: 'Samples in all shuffle buffers together' })
    .option('where', { type: 'string', describe: 'Only samples for which this holds: "width >= 256 and cls in (3, 7)"' })
    .option('step-ms', { type: 'number', describe: 'What a training step takes' })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
    .example('$0 plan shards --world-size 8 --batch-size 128', 'Batches, memory and mixing of 8 GPUs')
    .example('$0 plan shards --batch-size 256 --step-ms 87', 'What a step of 87 ms needs');

type PlanArguments = ReturnType<typeof builder> extends Argv<infer Given> ? Given : never;

export const planCommand: CommandModule<object, PlanArguments> = {
  command: 'plan <dataset>',
  describe: 'Say what an epoch costs and how well it is mixed, before anything is read',
  builder,
  handler: async ({ dataset: location, worldSize, batchSize, lastBatch, streams, shuffleBufferSize, where, stepMs, json }) => {
    const dataset = await openDataset(location);
    const report = await planOf(dataset, {
      worldSize,
      batchSize,
      where,
      ...(lastBatch !== undefined && { lastBatch }),
      ...(streams !== undefined && { streams }),
      ...(shuffleBufferSize !== undefined && { shuffleBufferSize }),
      ...(stepMs !== undefined && { stepMs }),
    });
    await dataset.close();
    console.log(json ? JSON.stringify(report) : describe(report));
  },
};

function describe(report: PlanReport): string {
  const { order, reads, memory, mixing, step } = report;
  const score = (value: number | null) => (value === null ? 'unknown' : value.toFixed(2));
  const lines = [
    `${formatCount(report.samples)} samples in ${formatCount(report.shards)} shards, ${report.worldSize} ranks of ${report.batchSize}: ` +
      `${formatCount(report.batches)} batches each, ${formatCount(report.paddedRows)} rows padded, ${formatCount(report.droppedSamples)} samples dropped`,
    `order: ${order.streams} streams, blocks of ${order.blockSamples}, units of a ${order.unit} (shuffle buffer ${formatCount(order.shuffleBufferSize)} samples)`,
    `a rank reads ${formatCount(reads.count)} pieces of ${formatSize(reads.meanBytes)} (largest ${formatSize(reads.largestBytes)}) an epoch`,
    `a rank holds ${formatSize(memory.totalBytes)}: read buffers ${formatSize(memory.readBytes)}, batch slots ${formatSize(memory.slotBytes)}`,
    `mixing, as a multiple of a perfect shuffle: shard ${score(mixing.shard)}, class ${score(mixing.class)}, repeat ${score(mixing.repeat)} (${mixing.sampledBatches} batches sampled)`,
  ];
  if (step !== null) {
    lines.push(
      `a step of ${step.stepMs} ms needs ${formatCount(Math.round(step.images))} images/s and ${formatSize(step.bytes)}/s in ` +
        `${step.reads.toFixed(1)} reads/s; file by file it would be ${formatCount(Math.round(step.fileReads))} file reads/s`,
    );
  }
  return lines.join('\n');
}
