import { FileError } from '@shardtool/base';

/** Reads of like size are compared: within a factor of 4. */
const CLASSES = 20;
const KEPT = 300;
const ENOUGH = 100;
const MOST_SHARE = 0.05;
/** A second request before this costs more than it can win. */
const LEAST_MS = 20;

/**
 * Says when a read is so late that it is better asked for once more: later than 99 of 100 of the last reads of its size,
 * and never more than one request in twenty.
 */
export class Hedging {
  readonly #durations: number[][] = Array.from({ length: CLASSES }, () => []);
  readonly #next = new Int32Array(CLASSES);
  readonly #limits = new Float64Array(CLASSES);
  #reads = 0;
  #hedged = 0;

  /** Milliseconds after which a read of so many bytes is asked for again; null where too little is known. */
  limitMs(bytes: number): number | null {
    this.#reads++;
    const limit = this.#limits[classOf(bytes)]!;
    return limit === 0 ? null : Math.max(LEAST_MS, limit);
  }

  /** Whether one more may be asked for now; counts it. */
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
 * What `ask` resolves with, asked for once more where the first request is late: the first answer counts, and what is late is
 * stopped. `ask` has ended when this resolves, but for requests whose answer did not count.
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
            // The first request goes on; where it fails, too, its own error counts.
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
