import { isUnreadable, ShardtoolError } from '@shardtool/base';

/** Something that is not as it was packed. Without a key it is the shard or its index as a whole. */
export interface Fault {
  readonly shard: string;
  readonly key?: string;
  /** One sentence, or several with a semicolon between them. */
  readonly reason: string;
}

/**
 * What an error says about the data of a dataset. An error that is not about data is thrown on: one of this program, or one that
 * says that data could not be read.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof ShardtoolError) || isUnreadable(error)) throw error;
  // The layouts put the path in front, and a fault has the shard's name.
  const { message, shard } = error;
  return shard !== undefined && message.startsWith(`${shard}: `) ? message.slice(shard.length + 2) : message;
}

/** What is wrong with one shard, gathered as it is found: one fault a sample, whatever is wrong with it. */
export class ShardFaults {
  readonly #shard: string;
  readonly #ofShard: string[] = [];
  readonly #ofSamples = new Map<string, string[]>();
  #changed = false;

  constructor(shard: string) {
    this.#shard = shard;
  }

  /** Whether something is no longer as it was packed. Images that cannot be decoded may have been packed so. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Something has changed. `key` names the sample; without it the fault is the shard's. */
  add(reason: string, key?: string): void {
    this.#changed = true;
    if (key === undefined) this.#ofShard.push(reason);
    else this.#addTo(key, reason);
  }

  /** An image cannot be decoded, whether it has changed or not. */
  addUndecodable(reason: string, key: string): void {
    this.#addTo(key, reason);
  }

  /** The shard's own faults first, then the samples' in the order in which they were found. */
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
