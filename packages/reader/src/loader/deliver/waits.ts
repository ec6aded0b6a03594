/** How long the consumer waits for batches, and why: over an epoch, and over the last minute. */

/**
 * Why a consumer waits for a batch. `start`: the loop begins, and the workers with it. `storage`: the samples are being read.
 * `order`: more samples must be read before a batch of one size is full (`aspectBuckets`), or an epoch is planned. `decode` and
 * `transform`: workers make images. `delivery`: the main thread reads the fields of the batch, and copies it.
 */
export const WAIT_CAUSES = ['start', 'storage', 'order', 'decode', 'transform', 'delivery'] as const;
export type WaitCause = (typeof WAIT_CAUSES)[number];

/** Milliseconds by cause. */
export type WaitTimes = Readonly<Record<WaitCause, number>>;

/** What the consumer did in a period: it waited for batches, or worked. Times in milliseconds. */
export interface WaitReport {
  readonly batches: number;
  readonly samples: number;
  /** Time for which the consumer waited for batches that were not ready. The sum of {@link waitMsBy}. */
  readonly waitMs: number;
  readonly waitMsBy: WaitTimes;
  /** Time for which the consumer worked with batches. */
  readonly consumerMs: number;
  /** The share of the time in which the consumer waited, from 0 to 1. */
  readonly waitShare: number;
  /** The cause with the longest total wait. Null if there was no wait. */
  readonly cause: WaitCause | null;
}

/** The waits of a loader, over all of its loops. */
export interface WaitReports {
  /** The epoch of the last batch, and the epoch before it. Null before the first batch. */
  readonly epoch: (WaitReport & { readonly epoch: number }) | null;
  readonly previousEpoch: (WaitReport & { readonly epoch: number }) | null;
  /** The last {@link WINDOW_SECONDS} seconds. */
  readonly window: WaitReport;
}

/** A batch that was delivered at `at`. Times in milliseconds. */
export interface Waited {
  readonly epoch: number;
  readonly rows: number;
  readonly at: number;
  /** Time for which the consumer worked before it requested this batch. */
  readonly consumerMs: number;
  readonly waits: WaitTimes;
}

export const WINDOW_SECONDS = 60;

/** Sums over a period. */
class Period {
  batches = 0;
  samples = 0;
  consumerMs = 0;
  readonly waits: Record<WaitCause, number> = { ...NO_WAIT };

  add({ rows, consumerMs, waits }: Waited): void {
    this.batches++;
    this.samples += rows;
    this.consumerMs += consumerMs;
    for (const cause of WAIT_CAUSES) this.waits[cause] += waits[cause];
  }

  join(other: Period): void {
    this.batches += other.batches;
    this.samples += other.samples;
    this.consumerMs += other.consumerMs;
    for (const cause of WAIT_CAUSES) this.waits[cause] += other.waits[cause];
  }

  report(): WaitReport {
    const { batches, samples, consumerMs, waits } = this;
    const waitMs = sumOf(waits);
    const all = waitMs + consumerMs;
    const cause = WAIT_CAUSES.reduce((most, other) => (waits[other] > waits[most] ? other : most));
    return {
      batches,
      samples,
      waitMs,
      waitMsBy: { ...waits },
      consumerMs,
      waitShare: all === 0 ? 0 : waitMs / all,
      cause: waits[cause] === 0 ? null : cause,
    };
  }
}

export const NO_WAIT: WaitTimes = { start: 0, storage: 0, order: 0, decode: 0, transform: 0, delivery: 0 };

/** Adds up the waits for batches. Its memory does not depend on their number. */
export class WaitLog {
  /** All waits since the loader was made. */
  readonly all = new Period();
  #epoch: { readonly epoch: number; readonly period: Period } | null = null;
  #previous: { readonly epoch: number; readonly period: Period } | null = null;
  /** A ring with one period for each second, and the second that each period is about. */
  readonly #seconds = Array.from({ length: WINDOW_SECONDS }, () => ({ second: -1, period: new Period() }));

  add(waited: Waited): void {
    const { epoch, at } = waited;
    this.all.add(waited);
    if (this.#epoch?.epoch !== epoch) {
      this.#previous = this.#epoch;
      this.#epoch = { epoch, period: new Period() };
    }
    this.#epoch.period.add(waited);
    const second = Math.floor(at / 1000);
    const place = second % WINDOW_SECONDS;
    if (this.#seconds[place]!.second !== second) this.#seconds[place] = { second, period: new Period() };
    this.#seconds[place]!.period.add(waited);
  }

  /** Epoch of the last batch; -1 before the first batch. */
  get epoch(): number {
    return this.#epoch?.epoch ?? -1;
  }

  /** `now` is on the clock of {@link Waited.at}. */
  report(now: number): WaitReports {
    const window = new Period();
    const last = Math.floor(now / 1000);
    for (const { second, period } of this.#seconds) {
      if (second > last - WINDOW_SECONDS && second <= last) window.join(period);
    }
    return { epoch: ofEpoch(this.#epoch), previousEpoch: ofEpoch(this.#previous), window: window.report() };
  }
}

function ofEpoch(
  entry: { readonly epoch: number; readonly period: Period } | null,
): (WaitReport & { readonly epoch: number }) | null {
  return entry && { epoch: entry.epoch, ...entry.period.report() };
}

export function sumOf(waits: WaitTimes): number {
  return WAIT_CAUSES.reduce((sum, cause) => sum + waits[cause], 0);
}

/**
 * Splits the wait of a consumer by cause, if other code takes batches ahead for it. `taker` are the waits of that code;
 * the rest of the consumer's wait is `delivery`. If `taker` waited longer than the consumer, the consumer's wait is
 * divided in the proportions of `taker`.
 */
export function splitByTaker(waitedMs: number, taker: WaitTimes): WaitTimes {
  const sum = sumOf(taker);
  const scale = sum > waitedMs ? waitedMs / sum : 1;
  const waits = Object.fromEntries(WAIT_CAUSES.map((cause) => [cause, taker[cause] * scale])) as Record<
    WaitCause,
    number
  >;
  waits.delivery += waitedMs - sum * scale;
  return waits;
}

/** The waits that were added to one log between two moments. */
export function waitsBetween(before: WaitTimes, after: WaitTimes): WaitTimes {
  return Object.fromEntries(WAIT_CAUSES.map((cause) => [cause, after[cause] - before[cause]])) as WaitTimes;
}

/** The times of one batch, in milliseconds on one clock. */
export interface BatchMoments {
  readonly asked: number;
  /** Time at which all of its rows were assigned to workers. */
  readonly issued: number;
  /** Time at which workers were finished with all rows. */
  readonly decoded: number;
  readonly delivered: number;
  /** How long after `asked` rows could not be assigned, because of a read or of the order. */
  readonly storageMs: number;
  readonly orderMs: number;
  /** How long, after `decoded`, rows were fetched once more or the rest of their blocks was read. */
  readonly againMs: number;
  /** The share of the transform in the time of the workers. */
  readonly transformShare: number;
  readonly startMs: number;
}

/** Splits the wait for a batch, from `asked` to `delivered`, by cause. The parts add up to the wait plus `startMs`. */
export function splitWait(moments: BatchMoments): WaitTimes {
  const { asked, delivered, transformShare, startMs } = moments;
  const within = (at: number): number => Math.min(Math.max(at, asked), delivered);
  const issued = within(moments.issued);
  const decoded = Math.max(issued, within(moments.decoded));
  const storage = Math.min(Math.max(moments.storageMs, 0), issued - asked);
  const order = Math.min(Math.max(moments.orderMs, 0), issued - asked - storage);
  const again = Math.min(moments.againMs, delivered - decoded);
  const work = decoded - issued;
  return {
    start: startMs,
    storage: storage + again,
    order,
    decode: work * (1 - transformShare),
    transform: work * transformShare,
    delivery: delivered - asked - storage - order - again - work,
  };
}
