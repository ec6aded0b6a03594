import { readFileSync } from 'node:fs';
import { optionName, sentence } from '@shardtool/base';
import { SourceTimeoutError } from '../../errors.js';

/** Maximum number of concurrent calls: the number of threads in the pool. */
export const MOST_IN_FLIGHT = 256;
/** Initial number of concurrent calls, enough for a latency of about a millisecond. */
const FIRST = 64;
const LEAST = 16;
/** An epoch ends when both this many times the limit of calls have completed, and the minimum time (ms) has passed. */
const ROUNDS = 3;
const LEAST_MS = 25;
/**
 * Doubling the concurrency must increase the rate by at least this factor; halving it may reduce the rate by at most
 * this factor.
 */
const WORTH_IT = 1.15;
const AS_GOOD = 0.97;
/** If the rate falls below this share of the earlier one, something has changed, and doubling is tried immediately. */
const DROPPED = 0.8;
/** Number of epochs at one limit before another is tried, because the latency may have changed. */
const STEADY = 8;
const LOOK_EVERY_MS = 250;

/** Settings of the concurrency that are sent to other threads. */
export interface FlightSetting {
  /** Fixed number of concurrent calls; null adjusts it to the rate. */
  readonly fixed: number | null;
  /** Initial number. */
  readonly first: number;
  /** Maximum in one thread, since each call may keep a file open. */
  readonly most: number;
  /** A call without an answer fails after this time, in ms. */
  readonly timeoutMs: number;
}

/** `threads` share the number of files that the system lets this process open. */
export function flightSetting(fixed: number | undefined, timeoutMs: number, threads = 1): FlightSetting {
  const files = Math.floor((openFilesLimit() - OTHER_FILES) / threads);
  const most = Math.max(1, Math.min(fixed ?? MOST_IN_FLIGHT, files));
  return { fixed: fixed ?? null, first: Math.min(fixed ?? FIRST, most), most, timeoutMs };
}

/** Files reserved for the process itself, its threads, and the shards being written. */
const OTHER_FILES = 64;

/** Limit of open files of this process; proc_pid_limits(5). Infinity if the system does not report it. */
function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

interface Call {
  readonly path: string;
  readonly since: number;
  readonly fail: (error: Error) => void;
}

/**
 * Makes concurrent calls to a file system with high latency. The number of calls is adjusted: it is doubled while that
 * increases the rate, and halved if the rate stays the same.
 */
export class InFlight {
  /** Current limit of concurrent calls. */
  limit: number;
  #live = 0;
  #most: number;
  readonly #setting: FlightSetting;
  readonly #open = new Set<Call>();
  readonly #timer: NodeJS.Timeout;
  /** The best limit so far, and its rate in calls per millisecond. */
  #kept: number;
  #rate = 0;
  #steady = STEADY - 1;
  #nextIsUp = true;
  /** Calls of this epoch. */
  #done = 0;
  #since = performance.now();
  /** True if something else slowed the work down, so that this epoch is not evaluated. */
  #skip = false;

  constructor(setting: FlightSetting) {
    this.#setting = setting;
    this.#most = setting.most;
    this.limit = setting.first;
    this.#kept = setting.first;
    this.#timer = setInterval(() => this.#look(), Math.min(LOOK_EVERY_MS, setting.timeoutMs)).unref();
  }

  get hasRoom(): boolean {
    return this.#live < this.limit;
  }

  /** Number of concurrent calls. */
  get live(): number {
    return this.#live;
  }

  /** Settings for another thread, which starts with the number found here. */
  get setting(): FlightSetting {
    return { ...this.#setting, first: this.#kept };
  }

  /**
   * Starts a call immediately and counts it until the promise of `begin` settles. Rejects with the error of `begin`, or
   * with {@link SourceTimeoutError}, which names `path`, if there is no answer in time.
   */
  run<Value>(
    path: string,
    begin: (done: (error: Error | null | undefined, value?: Value) => void) => void,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      const call: Call = { path, since: performance.now(), fail: reject };
      this.#open.add(call);
      this.#live++;
      begin((error, value) => {
        this.#open.delete(call);
        this.#live--;
        this.#count();
        if (error) reject(error);
        else resolve(value as Value);
      });
    });
  }

  /** Reports that something else slowed the work down: memory, or the end of the files. */
  starved(): void {
    this.#skip = true;
  }

  /** The system allows no more open files, so the limit is halved from now on. */
  tooMany(): void {
    this.#most = Math.max(1, Math.min(this.#live, this.limit) >> 1);
    this.limit = this.#most;
    this.#kept = this.#most;
    this.#skip = true;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The oldest call is the first of the set. */
  #look(): void {
    const now = performance.now();
    for (const call of this.#open) {
      if (now - call.since < this.#setting.timeoutMs) return;
      this.#open.delete(call);
      call.fail(timedOut(call.path, this.#setting.timeoutMs));
    }
  }

  #count(): void {
    if (this.#setting.fixed !== null) return;
    const now = performance.now();
    const ms = now - this.#since;
    if (++this.#done < ROUNDS * this.limit || ms < LEAST_MS) return;
    const before = this.limit;
    if (!this.#skip) this.#judge(this.#done / ms);
    // Calls that started at the old limit are still completing, so the first epoch at a new limit is not counted.
    this.#skip = this.limit !== before;
    this.#done = 0;
    this.#since = now;
  }

  #judge(rate: number): void {
    if (this.limit === this.#kept) {
      const hasDropped = rate < DROPPED * this.#rate;
      if (hasDropped) this.#nextIsUp = true;
      this.#rate = rate;
      if (++this.#steady >= STEADY || hasDropped) this.#tryAnother();
      return;
    }
    const wentUp = this.limit > this.#kept;
    if (rate <= (wentUp ? WORTH_IT : AS_GOOD) * this.#rate) {
      this.limit = this.#kept;
      this.#steady = 0;
      return;
    }
    this.#kept = this.limit;
    this.#rate = rate;
    this.#nextIsUp = wentUp;
    this.#tryAnother();
  }

  #tryAnother(): void {
    const next = this.#nextIsUp ? Math.min(this.#most, 2 * this.#kept) : Math.max(LEAST, this.#kept >> 1);
    this.limit = Math.min(this.#most, next);
    this.#nextIsUp = !this.#nextIsUp;
    this.#steady = 0;
  }
}

function timedOut(path: string, timeoutMs: number): SourceTimeoutError {
  const message = sentence`${path}: the file system has not answered for ${timeoutMs / 1000} s (${optionName('ioTimeout')}); check its mount, and pack again. Finished shards are kept.`;
  return new SourceTimeoutError({ path }, message);
}
