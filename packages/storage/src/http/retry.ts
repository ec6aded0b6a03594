import { setTimeout as sleep } from 'node:timers/promises';
import type { Retry, StorageCounts } from '../storage.js';

/** Something that may go well when it is tried again. */
export class TransientError extends Error {
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(reason, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

const MOST_TRIES = 10;
const MOST_MS = 180_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 15_000;

export const TRANSIENT_STATUS = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Milliseconds before try number `tries` (the second is 2). Between half of the doubled wait and all of it: with a lower
 * bound of 0, ten tries are over within 20 seconds as often as not, and a server that restarts takes that long.
 */
export function waitBefore(tries: number, random: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 2));
  return longest * (0.5 + random / 2);
}

/** What `Retry-After` asks for, in milliseconds; undefined where it is missing or not understood. */
export function retryAfterMs(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

type Hear = (retry: Retry) => void;
let hear: Hear = () => {};

/** From now on this thread's retries are told to `hearing`. */
export function onRetry(hearing: Hear): void {
  hear = hearing;
}

/** Passes on what another thread tells. */
export function tellRetry(retry: Retry): void {
  hear(retry);
}

/**
 * Tries until `attempt` resolves, or rejects with something else than {@link TransientError}: at most 10 times and for 180
 * seconds. Then it rejects with the last reason, and `gaveUp` says it in a sentence.
 */
export async function withRetries<T>(
  attempt: (tries: number) => Promise<T>,
  options: {
    readonly location: string;
    readonly counts: StorageCounts;
    readonly signal?: AbortSignal | undefined;
    gaveUp(reason: string, cause: unknown): Error;
  },
): Promise<T> {
  const began = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(tries);
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      const waitMs = Math.max(error.retryAfterMs ?? 0, waitBefore(tries + 1, Math.random()));
      const spent = performance.now() - began;
      if (tries === MOST_TRIES || spent + waitMs > MOST_MS) {
        const seconds = (spent / 1000).toFixed(spent < 10_000 ? 1 : 0);
        throw options.gaveUp(
          `${error.message}; tried ${tries} ${tries === 1 ? 'time' : 'times'} in ${seconds} s`,
          error,
        );
      }
      options.counts.retries++;
      hear({ location: options.location, reason: error.message, tries, waitMs });
      await sleep(waitMs, undefined, { signal: options.signal }).catch(() => {});
      options.signal?.throwIfAborted();
    }
  }
}
