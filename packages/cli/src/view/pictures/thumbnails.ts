/** Makes thumbnails, a few at a time, and keeps the most recent ones. */
import { LruCache } from '@shardtool/base';
import type { Picture } from './pictures.js';

/** Number of thumbnails decoded at a time. The thread that answers requests needs CPU time, too. */
const IN_FLIGHT = 4;
const KEPT_BYTES = 32 << 20;

/** The client no longer waits for this thumbnail. */
export class Withdrawn extends Error {}

interface Waiting {
  readonly signal: AbortSignal;
  start(): void;
  withdraw(): void;
}

export class Thumbnails {
  readonly #make: (index: number, size: number) => Promise<Picture>;
  readonly #kept = new LruCache<string, Picture>(KEPT_BYTES, undefined, ({ bytes }) => bytes.length);
  #atWork = 0;
  readonly #waiting: Waiting[] = [];

  constructor(make: (index: number, size: number) => Promise<Picture>) {
    this.#make = make;
  }

  /** Number of pictures that are being made or waited for. */
  get pending(): number {
    return this.#atWork + this.#waiting.length;
  }

  /** Rejects with {@link Withdrawn} if the signal aborts before its turn. */
  async get(index: number, size: number, signal: AbortSignal): Promise<Picture> {
    const name = `${size} ${index}`;
    const kept = this.#kept.get(name);
    if (kept !== undefined) return kept;
    await this.#turn(signal);
    try {
      const picture = await this.#make(index, size);
      this.#kept.set(name, picture);
      return picture;
    } finally {
      this.#atWork--;
      this.#waiting.shift()?.start();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(new Withdrawn());
    if (this.#atWork < IN_FLIGHT) {
      this.#atWork++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        signal,
        start: () => {
          signal.removeEventListener('abort', waiting.withdraw);
          this.#atWork++;
          resolve();
        },
        withdraw: () => {
          this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
          reject(new Withdrawn());
        },
      };
      signal.addEventListener('abort', waiting.withdraw, { once: true });
      this.#waiting.push(waiting);
    });
  }
}
