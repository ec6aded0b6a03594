import type { Control } from '../../ring/control.js';

/** Reads after which it is known how long they take. */
const KNOWN_READS = 64;
/** Time of reads from the page cache after which the time of the actual reads is compared with it, in microseconds. */
const WINDOW_US = 20_000;

/** Whether the reads of decode workers from shards wait for storage. Once they did, they do until {@link begin}. */
export class ReadSpeed {
  readonly #control: Pick<Control, 'takeReads'>;
  #reads = 0;
  #time = 0;
  #cachedTime = 0;
  #isSlow = false;

  constructor(control: Pick<Control, 'takeReads'>) {
    this.#control = control;
  }

  /** An epoch begins; `wasCached` if the last one came out of the page cache. */
  begin(wasCached: boolean): void {
    if (wasCached) this.#isSlow = false;
  }

  /** Whether the speed of reads is known. */
  get isKnown(): boolean {
    this.#look(false);
    return this.#reads >= KNOWN_READS;
  }

  get isSlow(): boolean {
    this.#look(false);
    return this.#isSlow;
  }

  /** Takes the reads so far as all that will be known. */
  settle(): void {
    this.#look(true);
    this.#reads = Math.max(this.#reads, KNOWN_READS);
  }

  #look(isLast: boolean): void {
    const { reads, time, cachedTime } = this.#control.takeReads();
    const wasKnown = this.#reads >= KNOWN_READS;
    this.#reads += reads;
    this.#time += time;
    this.#cachedTime += cachedTime;
    const becameKnown = !wasKnown && (isLast || this.#reads >= KNOWN_READS);
    if (!becameKnown && this.#cachedTime < WINDOW_US) return;
    if (this.#time > this.#cachedTime) this.#isSlow = true;
    this.#time = 0;
    this.#cachedTime = 0;
  }
}
