import { setTimeout as sleep } from 'node:timers/promises';
import type { Retry, StorageCounts } from '../storage.js';
import { warnOfRetry } from './warn-of-retry.js';

interface TransientOptions {
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined;
  readonly wasNeverReached?: boolean;
}

/** A temporary failure: another try may succeed. */
export class TransientError extends Error {
  /** Delay that the server requested, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** True if there was no connection and this host never answered: its address may be wrong. */
  readonly wasNeverReached: boolean;

  constructor(reason: string, options: TransientOptions = {}) {
    super(reason, options);
    this.retryAfterMs = options.retryAfterMs;
    this.wasNeverReached = options.wasNeverReached ?? false;
  }
}

const MOST_TRIES = 10;
const MOST_MS = 180_000;
/** Limit for a host that never answered: its address may be wrong, and the user waits for the first answer. */
const MOST_MS_UNREACHED = 6_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 15_000;

export const TRANSIENT_STATUS = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Delay before try number `tries` (the second is 2), in milliseconds: between half of the doubled delay and all of it. With a lower
 * bound of 0, half of the time ten tries would be over within 20 seconds, and a server may take that long to restart.
 */
export function waitBefore(tries: number, random: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 2));
  return longest * (0.5 + random / 2);
}

/** Delay that `Retry-After` asks for, in milliseconds; undefined if it is missing or not valid. */
export function retryAfterMs(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

type RetryListener = (retry: Retry) => void;
let listener: RetryListener = warnOfRetry;

/** Passes retries of this thread to `receive` instead of warning about them. */
export function onRetry(receive: RetryListener): void {
  listener = receive;
}

/** Reports a retry of another thread. */
export function reportRetry(retry: Retry): void {
  listener(retry);
}

/**
 * Calls `attempt` until it resolves, or rejects with another error than {@link TransientError}: at most 10 times and for 180
 * seconds, or for 6 seconds if the host never answered. Then it rejects with the error that `gaveUp` makes of the last reason.
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
      const most = error.wasNeverReached ? MOST_MS_UNREACHED : MOST_MS;
      if (tries === MOST_TRIES || spent + waitMs > most) {
        const seconds = (spent / 1000).toFixed(spent < 10_000 ? 1 : 0);
        throw options.gaveUp(
          `${error.message}; tried ${tries} ${tries === 1 ? 'time' : 'times'} in ${seconds} s`,
          error,
        );
      }
      options.counts.retries++;
      listener({ location: options.location, reason: error.message, tries, waitMs });
      await sleep(waitMs, undefined, { signal: options.signal }).catch(() => {});
      options.signal?.throwIfAborted();
    }
  }
}
