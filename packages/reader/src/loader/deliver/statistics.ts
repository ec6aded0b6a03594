/** A sample that could not be used, and why. */
export interface BadSample {
  readonly shard: string;
  readonly key: string;
  readonly reason: string;
  /** Key of the sample that took its row, with `onBad: 'replace'`. */
  readonly replacement?: string;
}

/** Where the time of an iteration was spent, and what went wrong. Times are in milliseconds. */
export interface LoaderReport {
  readonly batches: number;
  readonly samples: number;
  /** From asking for the first batch to having it. */
  readonly firstBatchMs: number;
  /** The consumer waited for a batch whose samples were not yet read. */
  readonly ioMs: number;
  /** The consumer waited for a batch whose samples were not yet decoded. */
  readonly decodeMs: number;
  /** The consumer was at work with a batch. */
  readonly consumerMs: number;
  /** The largest of the three times, which limits the rate. */
  readonly bound: 'io' | 'decode' | 'consumer';
  /** Images that were decoded although something in them was odd. */
  readonly warnings: number;
  /** Number of images of which only the data of the crop was decoded, with the crop index. */
  readonly spliced: number;
  readonly bad: number;
  /** Samples that the steps of {@link LoaderOptions.steps} left out. */
  readonly dropped: number;
  /** The first bad samples, at most {@link KEPT_BAD_SAMPLES}. */
  readonly badSamples: readonly BadSample[];
  /** Most bytes of encoded samples that were in memory at once. */
  readonly readBufferPeakBytes: number;
  /** Null if all shards are local and there is no cache. */
  readonly storage: StorageReport | null;
}

/** Requests to storage during an iteration. */
export interface StorageReport {
  /** Number of requests to servers, and bytes received, including those of failed requests. */
  readonly requests: number;
  readonly fetchedBytes: number;
  /** Requests that were made again, since they failed or were late. */
  readonly retries: number;
  readonly hedges: number;
  /** Samples that were fetched once more, since their crc32 was wrong. */
  readonly samplesAgain: number;
  /** Of the time that the consumer waited for batches, the share in which these had not been read yet. */
  readonly waitShare: number;
  /** Rate, in bytes per second, at which no step would have waited for data, for samples of mean size. */
  readonly neededBytesPerSecond: number;
  /** Actual rate of servers and the cache together. */
  readonly hadBytesPerSecond: number;
  /** Reads that the cache answered. */
  readonly cacheHits: number;
  readonly cacheHitBytes: number;
}

/** Values that the workers and the read buffers count. */
export type Measured = Pick<LoaderReport, 'warnings' | 'spliced' | 'readBufferPeakBytes'>;

/** Number of bad samples that are listed by name. All are counted. */
const KEPT_BAD_SAMPLES = 10_000;

export class Statistics {
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

  /** The consumer asks for a batch; returns the time. */
  asked(): number {
    const now = performance.now();
    if (this.#deliveredAt > 0) this.#consumerMs += now - this.#deliveredAt;
    return now;
  }

  /** The batch asked for at `askedAt` is there; all of its samples had been read at `readAt`. */
  delivered(rows: number, askedAt: number, readAt: number): void {
    const now = performance.now();
    const io = Math.min(Math.max(readAt - askedAt, 0), now - askedAt);
    this.#ioMs += io;
    this.#decodeMs += now - askedAt - io;
    if (this.#batches === 0) this.#firstBatchMs = now - askedAt;
    this.#batches++;
    this.#samples += rows;
    this.#deliveredAt = now;
  }

  countBad(sample: BadSample): void {
    this.#bad++;
    if (this.#badSamples.length < KEPT_BAD_SAMPLES) this.#badSamples.push(sample);
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

  /** Of the iteration so far. */
  get counts(): Pick<LoaderReport, 'samples'> {
    return { samples: this.#samples };
  }

  report({ warnings, spliced, readBufferPeakBytes }: Measured): Omit<LoaderReport, 'storage'> {
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
