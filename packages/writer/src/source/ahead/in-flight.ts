import { readFileSync } from 'node:fs';
import { SourceTimeoutError } from '../../errors.js';

/** As many calls as the pool has threads. */
export const MOST_IN_FLIGHT = 256;
/** Enough to begin with for a wait of a millisecond or so. */
const FIRST = 64;
const LEAST = 16;
/** An epoch ends after so many times the limit completions, and not before it has lasted so long (ms). */
const ROUNDS = 3;
const LEAST_MS = 25;
/** Twice as many in flight have to give at least this much more, half as many at least that much of the rate. */
const WORTH_IT = 1.15;
const AS_GOOD = 0.97;
/** Below this share of the rate that was, something has changed: twice as many are tried at once. */
const DROPPED = 0.8;
/** So many epochs at a limit before another is tried: the latency may have changed. */
const STEADY = 8;
const LOOK_EVERY_MS = 250;

/** What other threads are told of the calls in flight. */
export interface FlightSetting {
  /** So many at a time, whatever the rate; null follows it. */
  readonly fixed: number | null;
  /** To begin with. */
  readonly first: number;
  /** No more than these in one thread, since each may keep a file open. */
  readonly most: number;
  /** A call that has not answered after so long fails. */
  readonly timeoutMs: number;
}

/** `threads` share the files that the system lets this process have open. */
export function flightSetting(fixed: number | undefined, timeoutMs: number, threads = 1): FlightSetting {
  const files = Math.floor((openFilesLimit() - OTHER_FILES) / threads);
  const most = Math.max(1, Math.min(fixed ?? MOST_IN_FLIGHT, files));
  return { fixed: fixed ?? null, first: Math.min(fixed ?? FIRST, most), most, timeoutMs };
}

/** Of the process itself, its threads, and the shards that are written. */
const OTHER_FILES = 64;

/** What the system allows this process; proc_pid_limits(5). Without limit where it does not say. */
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
 * Calls to a file system that answers late, many at a time. How many is tried out: twice as many where that gives a
 * higher rate, half as many where the rate stays.
 */
export class InFlight {
  /** How many calls may be in flight now. */
  limit: number;
  #live = 0;
  #most: number;
  readonly #setting: FlightSetting;
  readonly #open = new Set<Call>();
  readonly #timer: NodeJS.Timeout;
  /** The limit that has proven best, and its calls a millisecond. */
  #kept: number;
  #rate = 0;
  #steady = STEADY - 1;
  #nextIsUp = true;
  /** Calls of this epoch. */
  #done = 0;
  #since = performance.now();
  /** Something else held the work back: this epoch tells nothing. */
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

  /** How many calls are in flight. */
  get live(): number {
    return this.#live;
  }

  /** For another thread, which begins with what was learnt here. */
  get setting(): FlightSetting {
    return { ...this.#setting, first: this.#kept };
  }

  /**
   * Begins a call at once and counts it until `begin` says that it is done. Rejects with what `begin` says, or with
   * {@link SourceTimeoutError}, which names `path`, where no answer comes in time.
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

  /** The limit was not what held the work back (memory, or the end of the files). */
  starved(): void {
    this.#skip = true;
  }

  /** The system lets no more files be open: half as many from now on. */
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
    // What was begun at the old limit still comes in: the first epoch at a new one is not counted.
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
  const message =
    `${path}: the file system has not answered for ${timeoutMs / 1000} s (--io-timeout); look after its mount, ` +
    'then pack again, and what is finished stays.';
  return new SourceTimeoutError({ path }, message);
}
