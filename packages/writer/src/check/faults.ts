import { isUnreadable, ShardtoolError } from '@shardtool/base';
import type { Fault } from '@shardtool/reader';

/**
 * Returns the message of an error about the data of a dataset. Other errors are thrown again: bugs, and data that could
 * not be read.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof ShardtoolError) || isUnreadable(error)) throw error;
  // Layouts put the path in front, but a fault already has the shard's name.
  const { message, shard } = error;
  return shard !== undefined && message.startsWith(`${shard}: `) ? message.slice(shard.length + 2) : message;
}

/** Faults of one shard in the order in which they are found: at most one fault per sample, with all its reasons. */
export class ShardFaults {
  readonly #shard: string;
  readonly #ofShard: string[] = [];
  readonly #ofSamples = new Map<string, string[]>();
  #changed = false;

  constructor(shard: string) {
    this.#shard = shard;
  }

  /** True if something differs from what was packed. Images that cannot be decoded may have been packed like that. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Adds a change. `key` names the sample; without it the fault concerns the whole shard. */
  add(reason: string, key?: string): void {
    this.#changed = true;
    if (key === undefined) this.#ofShard.push(reason);
    else this.#addTo(key, reason);
  }

  /** Adds an image that cannot be decoded, whether it has changed or not. */
  addUndecodable(reason: string, key: string): void {
    this.#addTo(key, reason);
  }

  /** Returns the faults of the shard first, then those of samples in the order in which they were found. */
  list(): Fault[] {
    const shard = this.#shard;
    return [
      ...this.#ofShard.map((reason) => ({ shard, reason })),
      ...Array.from(this.#ofSamples, ([key, reasons]) => ({ shard, key, reason: reasons.join('; ') })),
    ];
  }

  #addTo(key: string, reason: string): void {
    const reasons = this.#ofSamples.get(key);
    if (reasons === undefined) this.#ofSamples.set(key, [reason]);
    else reasons.push(reason);
  }
}
