/** Minimum number of reads, and minimum time in milliseconds, over which a rate is measured. */
const READS = 8;
const LEAST_MS = 100;
const GROWTH = 1.5;
/** A rate counts as higher if it exceeds the best one by this factor. */
const BETTER = 1.05;
const WHOLE_TURN_BYTES = 512 << 10;
const LEAST_TURN = 0.25;
/**
 * After this many measurements without gain, the limit is raised once more: the connection may have become less busy.
 */
const PATIENCE = 20;

/**
 * The turn that a read takes. A read of at least WHOLE_TURN_BYTES takes a whole turn. A shorter read mostly waits, so it
 * takes a smaller share of a turn, at least LEAST_TURN.
 */
export function turnOf(bytes: number): number {
  return Math.max(LEAST_TURN, Math.min(1, bytes / WHOLE_TURN_BYTES));
}

/**
 * Limit for the number of concurrent reads, which is raised as long as that increases the rate in bytes per second.
 * Each read takes a turn for as long as it runs.
 */
export class ReadsInFlight {
  readonly #most: number;
  readonly #waiting: { readonly turn: number; go(): void }[] = [];
  #limit: number;
  #underWay = 0;
  #best = 0;
  #bytes = 0;
  #reads = 0;
  #since = 0;
  /** True if a read had to wait for a turn since the last measurement, so that a higher limit would have been used. */
  #wasFull = false;
  #withoutGain = 0;

  /** The limit is `start` at first, and never more than `most`. */
  constructor(start: number, most: number) {
    this.#limit = Math.min(start, most);
    this.#most = most;
  }

  get limit(): number {
    return this.#limit;
  }

  async run(bytes: number, read: () => Promise<void>): Promise<void> {
    const turn = turnOf(bytes);
    if (this.#waiting.length > 0 || this.#underWay + turn > this.#limit) {
      this.#wasFull = true;
      await new Promise<void>((resolve) => this.#waiting.push({ turn, go: resolve }));
    } else this.#underWay += turn;
    if (this.#since === 0) this.#since = performance.now();
    try {
      await read();
      this.#done(bytes);
    } finally {
      this.#underWay -= turn;
      this.#letGo();
    }
  }

  #done(bytes: number): void {
    this.#bytes += bytes;
    this.#reads++;
    const ms = performance.now() - this.#since;
    if (this.#reads < Math.max(READS, this.#limit) || ms < LEAST_MS) return;
    const rate = this.#bytes / ms;
    const isBetter = rate > this.#best * BETTER;
    if (isBetter) this.#best = rate;
    this.#withoutGain = isBetter ? 0 : this.#withoutGain + 1;
    if (this.#wasFull && (isBetter || this.#withoutGain === PATIENCE)) {
      this.#withoutGain = 0;
      this.#raise(Math.ceil(this.#limit * GROWTH));
    }
    this.#bytes = 0;
    this.#reads = 0;
    this.#since = performance.now();
    this.#wasFull = false;
  }

  #raise(limit: number): void {
    this.#limit = Math.min(this.#most, limit);
    this.#letGo();
  }

  /** Gives free turns to the reads that have waited longest. */
  #letGo(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#underWay + next.turn > this.#limit) return;
      this.#underWay += next.turn;
      this.#waiting.shift();
      next.go();
    }
  }
}
