import { Sentence, type Spelling } from '@shardtool/base';
import type { PendingBatch } from './pending-batch.js';
import { splitWait, type WaitLog, type WaitReports } from './waits.js';

/** A sample that could not be used, and why. */
export interface BadSample {
  readonly shard: string;
  readonly key: string;
  readonly reason: string;
  /** Key of the sample that took its row, with `onBad: 'replace'`. */
  readonly replacement?: string;
}

/** Sentences of the reasons that name options. Each interface spells options in its own way. */
const SENTENCES = new WeakMap<BadSample, Sentence>();

/** Returns a bad sample of a report. In its reason, options are spelled for an interface. */
export function spelledBadSample(sample: BadSample, spelling: Spelling): BadSample {
  const said = SENTENCES.get(sample);
  return said === undefined ? sample : { ...sample, reason: said.spelled(spelling) };
}

/** Where the time of an iteration was spent, and what went wrong. Times are in milliseconds. */
export interface LoaderReport {
  readonly batches: number;
  readonly samples: number;
  /** Time from the request for the first batch until it was delivered. */
  readonly firstBatchMs: number;
  /** Time for which the consumer waited for batches whose samples were not read yet. */
  readonly ioMs: number;
  /** Time for which the consumer waited for batches whose samples were read, but not decoded yet. */
  readonly decodeMs: number;
  /** Time for which the consumer worked with batches. */
  readonly consumerMs: number;
  /** The largest of the three times, which limits the rate. */
  readonly bound: 'io' | 'decode' | 'consumer';
  /** Number of images that were decoded with a warning. */
  readonly warnings: number;
  /** Number of images of which only the data of the crop was decoded, with the help of a crop index. */
  readonly spliced: number;
  readonly bad: number;
  /** Number of samples that the steps of {@link LoaderOptions.steps} dropped. */
  readonly dropped: number;
  /** The first bad samples, at most {@link KEPT_BAD_SAMPLES}. */
  readonly badSamples: readonly BadSample[];
  /** Largest number of bytes of encoded samples that were in memory at the same time. */
  readonly readBufferPeakBytes: number;
  /** Null if all shards are local and there is no cache. */
  readonly storage: StorageReport | null;
  /** How long the consumer waited for batches, and why: in this epoch, and in the last minute. */
  readonly wait: WaitReports;
}

/** Requests to storage during an iteration. */
export interface StorageReport {
  /** Number of requests to servers, and bytes received, including those of failed requests. */
  readonly requests: number;
  readonly fetchedBytes: number;
  /** Number of requests that were repeated, because they failed or were late. */
  readonly retries: number;
  readonly hedges: number;
  /** Number of samples that were fetched once more because their crc32 was wrong. */
  readonly samplesAgain: number;
  /** Share of the consumer's waiting time in which the batches had not been read yet. */
  readonly waitShare: number;
  /** Rate, in bytes per second, at which no step would have waited for data, for samples of mean size. */
  readonly neededBytesPerSecond: number;
  /** Actual rate of servers and the cache together. */
  readonly hadBytesPerSecond: number;
  /** Number of reads that were served from the cache. */
  readonly cacheHits: number;
  readonly cacheHitBytes: number;
}

/** Values that the workers and the read buffers count. */
export type Measured = Pick<LoaderReport, 'warnings' | 'spliced' | 'readBufferPeakBytes'>;

/** Number of bad samples that are listed by name. All are counted. */
const KEPT_BAD_SAMPLES = 10_000;

/** The time of a request for a batch, and for how long the feeder had been blocked by then. */
export interface Asked {
  readonly at: number;
  readonly consumerMs: number;
  readonly blocked: { readonly storage: number; readonly order: number };
}

/** Time of the workers, in any unit. */
export interface WorkTimes {
  readonly decode: number;
  readonly transform: number;
}

export class Statistics {
  readonly #log: WaitLog;
  readonly #startMs: number;
  #askedAt: number | null = null;
  #batches = 0;
  #samples = 0;
  #firstBatchMs = 0;
  #ioMs = 0;
  #decodeMs = 0;
  #consumerMs = 0;
  #bad = 0;
  #dropped = 0;
  #samplesAgain = 0;
  readonly #badSamples: BadSample[] = [];
  #deliveredAt = 0;

  /** `log` adds up the waits. `startMs` is the time that the loop took to start. */
  constructor(log: WaitLog, startMs = 0) {
    this.#log = log;
    this.#startMs = startMs;
  }

  /** Called when the consumer requests a batch. `blocked`: for how long the feeder has been blocked. */
  asked(blocked: Asked['blocked']): Asked {
    const now = performance.now();
    const consumerMs = this.#deliveredAt > 0 ? now - this.#deliveredAt : 0;
    this.#consumerMs += consumerMs;
    this.#askedAt = now;
    return { at: now, consumerMs, blocked };
  }

  /** Time for which the consumer has been waiting for the batch that it requested. 0 if it does not wait. */
  get waitingMs(): number {
    return this.#askedAt === null ? 0 : performance.now() - this.#askedAt;
  }

  /** Called when the loop has ended, so that no request is open. */
  ended(): void {
    this.#askedAt = null;
  }

  /** Called when a batch is ready. `work`: time of the workers since the previous batch. */
  delivered(pending: PendingBatch, asked: Asked, work: WorkTimes): void {
    const { rows, epoch, issuedAt: readAt, blockedAtIssue } = pending;
    const { at: askedAt, consumerMs, blocked } = asked;
    const now = performance.now();
    this.#askedAt = null;
    const waits = splitWait({
      asked: askedAt,
      issued: readAt,
      decoded: pending.decodedAt,
      delivered: now,
      storageMs: blockedAtIssue.storage - blocked.storage,
      orderMs: blockedAtIssue.order - blocked.order,
      againMs: pending.againMs,
      transformShare: work.transform === 0 ? 0 : work.transform / (work.transform + work.decode),
      startMs: this.#batches === 0 ? this.#startMs : 0,
    });
    this.#log.add({ epoch, rows, at: now, consumerMs, waits });
    const io = Math.min(Math.max(readAt - askedAt, 0), now - askedAt);
    this.#ioMs += io;
    this.#decodeMs += now - askedAt - io;
    if (this.#batches === 0) this.#firstBatchMs = now - askedAt;
    this.#batches++;
    this.#samples += rows;
    this.#deliveredAt = now;
  }

  countBad({ reason, ...whose }: Omit<BadSample, 'reason'> & { readonly reason: string | Sentence }): void {
    this.#bad++;
    if (this.#badSamples.length >= KEPT_BAD_SAMPLES) return;
    const sample = { ...whose, reason: String(reason) };
    if (reason instanceof Sentence) SENTENCES.set(sample, reason);
    this.#badSamples.push(sample);
  }

  countDropped(): void {
    this.#dropped++;
  }

  countFetchedAgain(): void {
    this.#samplesAgain++;
  }

  /** Returns the report on storage. `bytes` is the number of bytes received from it. */
  ofStorage(
    bytes: number,
    meanSampleBytes: number,
  ): Pick<StorageReport, 'samplesAgain' | 'waitShare' | 'neededBytesPerSecond' | 'hadBytesPerSecond'> {
    const waitedMs = this.#ioMs + this.#decodeMs;
    const perSecond = (count: number, ms: number): number => (ms === 0 ? 0 : Math.round((count / ms) * 1000));
    return {
      samplesAgain: this.#samplesAgain,
      waitShare: waitedMs === 0 ? 0 : this.#ioMs / waitedMs,
      neededBytesPerSecond: perSecond(this.#samples * meanSampleBytes, this.#decodeMs + this.#consumerMs),
      hadBytesPerSecond: perSecond(bytes, waitedMs + this.#consumerMs),
    };
  }

  /** Statistics of the iteration so far. */
  get counts(): Pick<LoaderReport, 'samples' | 'bad' | 'dropped'> {
    return { samples: this.#samples, bad: this.#bad, dropped: this.#dropped };
  }

  report({ warnings, spliced, readBufferPeakBytes }: Measured): Omit<LoaderReport, 'storage' | 'wait'> {
    const times = { io: this.#ioMs, decode: this.#decodeMs, consumer: this.#consumerMs };
    const [bound] = Object.entries(times).sort((a, b) => b[1] - a[1])[0]! as ['io' | 'decode' | 'consumer', number];
    return {
      batches: this.#batches,
      samples: this.#samples,
      firstBatchMs: this.#firstBatchMs,
      ioMs: this.#ioMs,
      decodeMs: this.#decodeMs,
      consumerMs: this.#consumerMs,
      bound,
      warnings,
      spliced,
      bad: this.#bad,
      dropped: this.#dropped,
      badSamples: this.#badSamples,
      readBufferPeakBytes,
    };
  }
}
