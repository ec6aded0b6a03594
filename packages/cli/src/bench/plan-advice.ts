import type { PlanReport } from '@shardtool/reader';
import { countOf, formatCount, formatSize } from '../terminal/size.js';

/** Up to this multiple of a perfect shuffle, training does not notice a difference. */
const MIXED = 1.25;
/** Smallest fraction of padded rows, or dropped samples, that is reported. */
const LEFT_OVER = 0.01;
/** A remote read of fewer bytes takes as long as its round trip. */
const LEAST_READ = 256 * 1024;

/** Facts about a planned run that its report does not contain. */
export interface PlanFacts {
  readonly report: PlanReport;
  readonly isRemote: boolean;
  readonly cores: number;
}

/** Sentences that name an option and its expected gain. None if no option helps. */
export function adviceOnPlan({ report, isRemote, cores }: PlanFacts): string[] {
  return [
    shuffleQuality(report),
    endOfEpoch(report),
    storage(report),
    reads(report, isRemote),
    rate(report, cores),
  ].flat();
}

/** If shards were packed in a random order, a batch from few of them is still mixed: known classes decide then. */
function shuffleQuality({ shuffleQuality: { shard, class: cls }, order, samples }: PlanReport): string[] {
  const score = cls ?? shard ?? 1;
  if (score <= MIXED || order.shuffleBufferSize >= samples) return [];
  return [
    `two samples of a batch are from one ${cls === null ? 'shard' : 'class'} ${score.toFixed(1)} times as often as by chance: --streams ` +
      `${order.streams * 2} takes each batch from twice as many positions, with twice as many reads; shards packed in random order do not need this`,
  ];
}

function endOfEpoch({ paddedRows, droppedSamples, samples, lastBatch, globalBatch }: PlanReport): string[] {
  const left = Math.max(paddedRows, droppedSamples);
  if (left <= LEFT_OVER * samples) return [];
  const share = `${((left / samples) * 100).toFixed(1)} % of the samples`;
  const remedy = `a smaller --batch-size than ${formatCount(globalBatch)} over all ranks leaves fewer rows`;
  return lastBatch === 'drop'
    ? [`${share} are dropped at the end of each epoch (different ones each time): ${remedy}`]
    : [`the last batches are padded with repeated rows, as many as ${share}: ${remedy}; batch.valid marks them`];
}

function storage({ storage: needs, step }: PlanReport): string[] {
  if (needs === null || step === null) return [];
  const { first, later, cacheSize, bandwidth } = needs;
  if (later.waitShare === 0 && first.waitShare === 0) return [];
  const percent = (share: number) => `${Math.ceil(share * 100)} %`;
  const lines: string[] = [];
  if (later.waitShare > 0) {
    const whole = first.fetchedBytes;
    if (cacheSize < whole)
      lines.push(
        `--cache-size ${formatSize(whole)} holds all that a machine reads, so nothing is fetched after the first epoch`,
      );
    lines.push(
      `or smaller samples: at ${formatSize(bandwidth)}/s a step needs ${(later.bytesPerSecond / bandwidth).toFixed(1)} times ` +
        'fewer bytes; --resize makes samples smaller when packing',
    );
  }
  const when =
    later.waitShare > 0
      ? `each epoch waits ${percent(later.waitShare)}`
      : `only the first epoch waits ${percent(first.waitShare)}`;
  return [`${when} of its time for storage${lines.length > 0 ? ':' : ''}`, ...lines.map((line) => `  ${line}`)];
}

function reads({ reads: { meanBytes, count } }: PlanReport, isRemote: boolean): string[] {
  if (!isRemote || count === 0 || meanBytes >= LEAST_READ) return [];
  return [
    `the mean read of ${formatSize(meanBytes)} takes hardly longer than its round trip: fewer --streams, or larger shards ` +
      '(--max-shard-bytes when packing), make reads longer',
  ];
}

function rate({ step }: PlanReport, cores: number): string[] {
  if (step === null) return [];
  const each = Math.round(step.imagesPerRank);
  return [
    `to measure whether this machine (${countOf(cores, 'core')}) can decode ${formatCount(each)} images/s per rank: ` +
      `shardtool bench DATASET --step-ms ${step.stepMs}`,
  ];
}
