import { setTimeout as sleep } from 'node:timers/promises';
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads';
import { warn } from '@shardtool/base';
import type { Retry, StorageCounts } from '../storage.js';

interface TransientOptions {
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined;
  readonly wasNeverReached?: boolean;
}

/** Something that may go well when it is tried again. */
export class TransientError extends Error {
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** There was no connection, and nothing was ever read from this host: it may be the wrong one. */
  readonly wasNeverReached: boolean;

  constructor(reason: string, options: TransientOptions = {}) {
    super(reason, options);
    this.retryAfterMs = options.retryAfterMs;
    this.wasNeverReached = options.wasNeverReached ?? false;
  }
}

const MOST_TRIES = 10;
const MOST_MS = 180_000;
/** A host that was never reached is given up sooner: its address may be wrong, and a person waits for the first answer. */
const MOST_MS_UNREACHED = 6_000;
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

type RetryListener = (retry: Retry) => void;
let listener: RetryListener = warnOfRetry;

/** From now on this thread's retries go to `receive`; without it, the process warns of them. */
export function onRetry(receive: RetryListener): void {
  listener = receive;
}

/** Passes on a retry of another thread. */
export function reportRetry(retry: Retry): void {
  listener(retry);
}

/** All threads of a process warn at most this often together: a host that is down fails many reads at once. */
const WARNING_EVERY_S = 60;
const WARNED = 'shardtool.retry-warned';
if (isMainThread) setEnvironmentData(WARNED, new Int32Array(new SharedArrayBuffer(4)));

/** Warns of the first failure of an outage at once: else a process without a terminal waits for minutes without a word. */
function warnOfRetry({ location, reason }: Retry): void {
  const warned = getEnvironmentData(WARNED) as Int32Array;
  const now = Math.floor(Date.now() / 1000);
  const last = Atomics.load(warned, 0);
  if (now - last < WARNING_EVERY_S || Atomics.compareExchange(warned, 0, last, now) !== last) return;
  warn('SHARDTOOL_RETRY', `${location}: ${reason}. shardtool tries again.`);
}

/**
 * Tries until `attempt` resolves, or rejects with something else than {@link TransientError}: at most 10 times and for 180
 * seconds, or for some seconds if the host was never reached. Then it rejects with the last reason, and `gaveUp` says it in a
 * sentence.
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
