import type { WakeSignal } from '@shardtool/base';
import { optionName, sentence } from '@shardtool/base';
import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import { type Arena, ReadBufferError } from '../arena.js';
import type { Block, BlockReader, LoadedShard } from '../block.js';
import { load, planLoad } from '../load-shards.js';
import type { Demand } from './block-reader.js';
import { stretchBytes, stretchesOf } from './stretches.js';

/** Row and shard of a sample, and the pass. */
export interface SampleRow {
  readonly pass: number;
  readonly shard: number;
  readonly row: number;
  readonly occurrence: number;
}

/** A source of single samples, each as a block. `reader` frees them. */
export interface SingleSamples {
  read(sample: SampleRow, reader: BlockReader): Block | Promise<Block>;
}

/** A block of one sample, whose memory starts at `place`. */
export function blockOfOne(
  { pass, shard, row, occurrence }: SampleRow,
  reader: BlockReader,
  held: Pick<Block, 'shards' | 'inShards' | 'place' | 'bytes'>,
): Block {
  const columns = { shard: Int32Array.of(shard), row: Uint32Array.of(row), occurrence: Uint32Array.of(occurrence) };
  return { ...columns, ...held, reader, ordinal: -1, pass, items: 1, left: 1 };
}

/** A source of single samples of shards that are in memory, or that workers read themselves. It has nothing to read. */
export function singlesOf(
  loaded: (shard: number) => LoadedShard | Promise<LoadedShard>,
  inShards: boolean,
): SingleSamples {
  return {
    read(sample, reader) {
      const blockOf = (shard: LoadedShard): Block =>
        blockOfOne(sample, reader, { shards: new Map([[sample.shard, shard]]), inShards, place: 0, bytes: 0 });
      const found = loaded(sample.shard);
      return found instanceof Promise ? found.then(blockOf) : blockOf(found);
    },
  };
}

/** Returns the stretches of one row of a shard in order. */
export function onlyRow(
  { index, crops }: LoadedShard,
  row: number,
): { readonly shard: LoadedShard; readonly bytes: number } {
  const rows = Uint32Array.of(row);
  const stretches = stretchesOf(index, rows);
  let bytes = stretchBytes(stretches);
  const own = crops !== null && crops.columns.bytes[row]! > 0 ? stretchesOf(crops.columns, rows, bytes) : [];
  bytes += stretchBytes(own);
  return { shard: { index, stretches, crops: crops && { columns: crops.columns, stretches: own } }, bytes };
}

export interface ReadSinglesOptions {
  readonly store: ShardStore;
  readonly arena: Arena;
  readonly wakeSignal: WakeSignal;
  readonly demand: Demand;
  /** Drops a waiting sample. Returns false if there is none. */
  makeRoom(): boolean;
}

/** Reads single samples from their shards, each with a separate read. */
export class ReadSingles implements SingleSamples {
  readonly #options: ReadSinglesOptions;
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  constructor(options: ReadSinglesOptions) {
    this.#options = options;
  }

  read(sample: SampleRow, reader: BlockReader): Promise<Block> {
    const reading = this.#read(sample, reader);
    this.#underWay.add(reading);
    // The caller that waits for the sample receives the error.
    reading.catch(() => {}).finally(() => this.#underWay.delete(reading));
    return reading;
  }

  /** Resolves when no read is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#options.wakeSignal.notify();
    await Promise.allSettled(this.#underWay);
  }

  async #read(sample: SampleRow, reader: BlockReader): Promise<Block> {
    const { store, arena } = this.#options;
    const parts = await planLoad([{ shard: sample.shard, rows: Uint32Array.of(sample.row) }], store);
    const place = await this.#allocate(parts.bytes);
    try {
      await load(parts.shards, { store, arena, place, pass: sample.pass });
    } catch (error) {
      arena.free(place, parts.bytes);
      throw error;
    }
    return blockOfOne(sample, reader, { shards: parts.shards, inShards: false, place, bytes: parts.bytes });
  }

  /** Allocates memory, after waiting for batches to free it if necessary. Throws if no batch will free any. */
  async #allocate(bytes: number): Promise<number> {
    const { arena, wakeSignal, demand, makeRoom } = this.#options;
    for (;;) {
      if (this.#closed) throw new ReadBufferError({}, 'The loader was closed while it was reading.');
      const place = arena.allocate(bytes);
      if (place >= 0) return place;
      if (makeRoom()) continue;
      if (demand.isUrgent()) throw noRoom(bytes, arena.capacity);
      await wakeSignal.wait();
    }
  }
}

function noRoom(bytes: number, capacity: number): ReadBufferError {
  return new ReadBufferError(
    {},
    sentence`A sample of ${bytes} bytes and the other samples of its batch do not fit ${capacity} bytes: raise ${optionName('holdBytes')}, or choose a smaller ${optionName('batchSize')}.`,
  );
}
