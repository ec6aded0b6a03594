import { countOf } from '../terminal/size.js';

/** The results of a bench that advice depends on. Shares are fractions of the time of the consumer's thread, 0 to 1. */
export interface Findings {
  readonly boundBy: { readonly io: number; readonly decode: number; readonly consumer: number };
  readonly workers: number;
  readonly cores: number;
  /** Mean width and height of the stored images, in pixels. Null if the index has no sizes, or if nothing is decoded. */
  readonly stored: { readonly width: number; readonly height: number } | null;
  /** Whether shards of JPEGs lack a crop index that this machine could use. */
  readonly lacksCropIndex: boolean;
  readonly isRemote: boolean;
  readonly hasCache: boolean;
  readonly prefetchBatches: number;
  /** How many batches after the first a step of `stepMs` waited for. Null without a step. */
  readonly step: {
    readonly stepMs: number;
    readonly batches: number;
    readonly waited: number;
    readonly share: number;
  } | null;
}

/** Usual shorter side, in pixels, of images that are packed for training on 224x224. */
const PACKED_SIDE = 256;
/** A smaller gain is within the difference between two runs. */
const LEAST_GAIN = 1.1;
/** Fraction of the time that a step waits: below SELDOM it is negligible, from OFTEN on the loader is too slow. */
const SELDOM = 0.01;
const OFTEN = 0.1;
const CROP_INDEX_GAIN = '1.2 to 1.4';

/** Sentences that name an option and its expected gain, the largest first. If no option helps, they say what limits the rate. */
export function adviceOn(findings: Findings): string[] {
  const { boundBy, step } = findings;
  const { io, decode, consumer } = boundBy;
  if (consumer >= Math.max(io, decode)) {
    if (step === null) return [];
    const keepsUp = 'The loader keeps up with the step, so a faster loader would change nothing.';
    if (step.share < SELDOM) return [keepsUp];
    if (step.share < OFTEN) return waitingAdvice(findings);
  }
  return decode >= io ? decodingAdvice(findings) : readingAdvice(findings);
}

/** Speedup of the whole if a part that takes `share` of the time becomes `times` as fast (Amdahl, 1967). */
function overall(share: number, times: number): number {
  return 1 / (1 - share + share / times);
}

function decodingAdvice({ boundBy, workers, cores, stored, lacksCropIndex }: Findings): string[] {
  const found: { readonly gain: number; readonly text: string }[] = [];
  const offer = (times: number, about: string, text: string) => {
    const gain = overall(boundBy.decode, times);
    if (gain >= LEAST_GAIN) found.push({ gain, text: `${text}: ${about} ${gain.toFixed(1)} times as fast` });
  };
  if (stored !== null) {
    const shrink = Math.min(stored.width, stored.height) / PACKED_SIDE;
    const fewer = `(${(shrink * shrink).toFixed(1)} times fewer pixels; crops are then taken from smaller images)`;
    if (shrink > 1) offer(shrink * shrink, 'about', `--resize ${PACKED_SIDE} when packing ${fewer}`);
  }
  if (workers < cores) offer(cores / workers, 'up to', `--workers ${cores}, one per core`);
  found.sort((a, b) => b.gain - a.gain);
  const lines = found.map(({ text }) => text);
  if (lacksCropIndex) {
    lines.push(
      `shardtool index FOLDER --index crops: random crops of baseline JPEGs ${CROP_INDEX_GAIN} times as fast, pixel for pixel the same`,
    );
  }
  if (workers >= cores)
    lines.push(
      `${countOf(workers, 'worker')} already ${workers === 1 ? 'has' : 'have'} ${countOf(cores, 'core')}: a machine with more cores is faster in proportion`,
    );
  return [`${percent(boundBy.decode)} of the time is spent waiting for decoding:`, ...lines.map((line) => `  ${line}`)];
}

function readingAdvice({ boundBy, isRemote, hasCache }: Findings): string[] {
  const gain = overall(boundBy.io, Number.POSITIVE_INFINITY).toFixed(1);
  const way =
    isRemote && !hasCache
      ? `  --cache FOLDER on a local disk: up to ${gain} times as fast from the second epoch on, for the part of the dataset that fits into the cache`
      : `  data that fits into memory is read from there later: up to ${gain} times as fast from the second epoch on (--epochs 2 measures it)`;
  return [`${percent(boundBy.io)} of the time is spent waiting for reads:`, way];
}

function waitingAdvice({ prefetchBatches, boundBy }: Findings): string[] {
  const what = boundBy.decode >= boundBy.io ? 'decoding' : 'reads';
  return [
    `Some steps wait for ${what}:`,
    `  --prefetch-batches ${prefetchBatches * 2}: prepares more batches ahead, which covers waits of up to ${countOf(prefetchBatches * 2 - 1, 'step')}`,
  ];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** A sentence about whether a step ever waits. */
export function answerOn({ stepMs, batches, waited, share }: NonNullable<Findings['step']>): string {
  return `a step of ${stepMs} ms waited in ${waited} of ${countOf(batches, 'batch', 'batches')}, ${(share * 100).toFixed(1)} % of the time`;
}
