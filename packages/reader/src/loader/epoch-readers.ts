import type { ShardFiles } from '../dataset/shard-files.js';
import type { EpochPlan } from '../order/batches.js';
import { firstNumbers } from '../order/units.js';
import type { Selection } from '../selection/selection.js';
import { type Arena, ReadBufferError } from './arena.js';
import { type BlockReader, type LoadedShard, type ShardRows, stretchesOf } from './block.js';
import { readStretches, ResidentReader, StreamingReader, totalBytes } from './block-reader.js';

export interface EpochReadersOptions {
  readonly files: ShardFiles;
  readonly slabs: number;
  readonly readConcurrency: number;
}

/** The samples of a selection, kept in memory from epoch to epoch. */
interface Residents {
  readonly selection: Selection;
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly place: number;
  readonly bytes: number;
}

/**
 * Makes the reader of each epoch: one that keeps everything where the dataset fits the shuffle buffers as a whole (the
 * unit is a sample, and every block needs samples from everywhere), else one that streams blocks.
 */
export class EpochReaders {
  readonly #options: EpochReadersOptions;
  readonly #arena: Arena;
  #residents: Residents | null = null;

  constructor(arena: Arena, options: EpochReadersOptions) {
    this.#arena = arena;
    this.#options = options;
  }

  async reader(plan: EpochPlan, selection: Selection, mayFree: () => boolean): Promise<BlockReader> {
    const first = firstNumbers(selection.counts);
    const blocks = plan.blocks();
    if (plan.unit === 'sample') {
      const { shards } = await this.#resident(selection);
      return new ResidentReader({ shards, blocks, first, selection });
    }
    const { files, slabs, readConcurrency } = this.#options;
    return new StreamingReader({
      blocks,
      first,
      selection,
      store: files,
      arena: this.#arena,
      slabs,
      readConcurrency,
      mayFree,
    });
  }

  async #resident(selection: Selection): Promise<Residents> {
    if (this.#residents?.selection === selection) return this.#residents;
    if (this.#residents !== null) this.#arena.free(this.#residents.place, this.#residents.bytes);
    this.#residents = null;
    const { files } = this.#options;
    const shards = await selectedShards(files, selection);
    const bytes = totalBytes(shards);
    const place = this.#arena.allocate(bytes);
    if (place < 0) {
      throw new ReadBufferError(
        {},
        `The samples take ${bytes} bytes and the read buffers have ${this.#arena.capacity}: set readBufferBytes to at ` +
          `least ${bytes}, or shuffleUnit to 'chunk'.`,
      );
    }
    await readStretches(shards, place, files, this.#arena);
    this.#residents = { selection, shards, place, bytes };
    return this.#residents;
  }
}

/** Every shard with selected samples, and the stretches that hold them. */
export async function selectedShards(files: ShardFiles, selection: Selection): Promise<Map<number, LoadedShard>> {
  const shards = new Map<number, LoadedShard>();
  for (const { shard, rows } of selectedRows(files, selection)) {
    const index = await files.index(shard);
    shards.set(shard, { index, stretches: stretchesOf(index, rows) });
  }
  return shards;
}

function* selectedRows(files: ShardFiles, selection: Selection): Generator<ShardRows> {
  for (let shard = 0; shard < files.files.length; shard++) {
    if (selection.counts[shard] === 0) continue;
    const rows = selection.rows(shard) ?? Uint32Array.from({ length: files.files[shard]!.samples }, (_, row) => row);
    yield { shard, rows };
  }
}
