import { FileError } from '@shardtool/base';

/** Reads are compared with reads of similar size: within a factor of 4. */
const CLASSES = 20;
const KEPT = 300;
const ENOUGH = 100;
const MOST_SHARE = 0.05;
/** A second request before this time costs more than it can gain. */
const LEAST_MS = 20;

/**
 * Decides when a read is late enough to be requested a second time: later than 99 of 100 of the last reads of its size. At most one
 * request in twenty is hedged.
 */
export class Hedging {
  readonly #durations: number[][] = Array.from({ length: CLASSES }, () => []);
  readonly #next = new Int32Array(CLASSES);
  readonly #limits = new Float64Array(CLASSES);
  #reads = 0;
  #hedged = 0;

  /** Time after which a read of `bytes` bytes is requested again, in milliseconds; null if too few reads are known. */
  limitMs(bytes: number): number | null {
    this.#reads++;
    const limit = this.#limits[classOf(bytes)]!;
    return limit === 0 ? null : Math.max(LEAST_MS, limit);
  }

  /** Returns true if one more request is allowed now, and counts it. */
  take(): boolean {
    if (this.#hedged + 1 > this.#reads * MOST_SHARE) return false;
    this.#hedged++;
    return true;
  }

  took(bytes: number, ms: number): void {
    const kind = classOf(bytes);
    const durations = this.#durations[kind]!;
    durations[this.#next[kind]!++ % KEPT] = ms;
    if (durations.length < ENOUGH || this.#next[kind]! % 16 !== 0) return;
    this.#limits[kind] = durations.toSorted((a, b) => a - b)[Math.floor(durations.length * 0.99)]!;
  }
}

/**
 * Returns the result of `ask`, which is called a second time if the first call is late: the first answer is used, and the other call
 * is aborted. When this resolves, only a call whose answer is not used may still be running.
 */
export async function hedged<Answer>(
  hedging: Hedging,
  bytes: number,
  { signal, onHedge }: { readonly signal: AbortSignal | undefined; readonly onHedge: () => void },
  ask: (signal: AbortSignal | undefined, isFirst: boolean) => Promise<Answer>,
): Promise<Answer> {
  const began = performance.now();
  const took = (): void => hedging.took(bytes, performance.now() - began);
  const limit = hedging.limitMs(bytes);
  if (limit === null) {
    const answer = await ask(signal, true);
    took();
    return answer;
  }
  const first = new AbortController();
  const second = new AbortController();
  const stop = (): void => {
    first.abort(signal!.reason);
    second.abort(signal!.reason);
  };
  signal?.addEventListener('abort', stop, { once: true });
  let timer: NodeJS.Timeout | undefined;
  try {
    const reading = ask(first.signal, true);
    const other = new Promise<{ readonly copy: Answer }>((resolve, reject) => {
      timer = setTimeout(() => {
        if (!hedging.take()) return;
        onHedge();
        ask(second.signal, false).then(
          (copy) => resolve({ copy }),
          (error) => {
            // The first request continues. If it fails as well, its error is reported.
            if (!(error instanceof FileError)) reject(error);
          },
        );
      }, limit);
    });
    other.catch(() => {});
    const winner = await Promise.race([reading.then((answer) => ({ answer })), other]);
    if ('copy' in winner) {
      first.abort(new Error('another request was faster'));
      await reading.catch(() => {});
    }
    took();
    return 'copy' in winner ? winner.copy : winner.answer;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
    second.abort(new Error('another request was faster'));
  }
}

function classOf(bytes: number): number {
  return Math.min(CLASSES - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 2));
}
