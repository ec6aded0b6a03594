import type { WakeSignal } from '@shardtool/base';
import { optionName, sentence, total } from '@shardtool/base';
import type { ShardFiles } from '../../../dataset/shards/shard-files.js';
import { type ShardStore, whileWanted } from '../../../dataset/shards/shard-store.js';
import type { EpochPlan } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Selection } from '../../../selection/selection.js';
import { type Arena, ReadBufferError } from '../arena.js';
import type { BlockReader, LoadedShard } from '../block.js';
import { planLoad, selectedRows } from '../load-shards.js';
import { type Demand, StreamingReader } from './block-reader.js';
import { type BatchReader, BucketReader } from './bucket-reader.js';
import type { CheckedSamples } from './checked-samples.js';
import { NO_OPENING, type Opening, openingOf } from './opening.js';
import type { ReadHistory } from './read-history.js';
import type { ReadSpeed } from './read-speed.js';
import { ResidentReader } from './resident-reader.js';
import { firstSamples, Residents } from './residents.js';
import { ReadSingles, singlesOf } from './single-samples.js';
import type { Stretch } from './stretches.js';
import { type AheadOptions, UnreadReader, wholeShard } from './unread-reader.js';

export interface EpochReadersOptions {
  readonly files: ShardFiles;
  /** The order for the reader. */
  readonly store: ShardStore;
  readonly arena: Arena;
  /** Memory for single samples, and the part of it that waiting samples may use. */
  readonly held: Arena;
  readonly holdBytes: number;
  readonly wakeSignal: WakeSignal;
  readonly buffers: number;
  readonly readConcurrency: number | undefined;
  /** Every sample that may occur in any epoch. */
  readonly all: Selection;
  readonly samplesOf: SamplesOf;
  /** History of the reads of this dataset. It is kept longer than these readers. */
  readonly history: ReadHistory;
  /** Epochs in which the crc32 of delivered data is checked. */
  readonly checksum: 'first-epoch' | 'always' | 'never';
  /** Workers read the images of all epochs from the shards. */
  readonly staysInShards: boolean;
  /** Images are uncompressed. If they are cached, workers read them from the shards, and only their crops if they are not checked. */
  readonly canReadCrops: boolean;
  /** Speed of the reads of workers. */
  readonly speed: ReadSpeed;
}

/** How the blocks of an epoch are read. */
export interface EpochReading {
  readonly reader: BlockReader;
  /** The same reader, if batches consist of waiting samples; otherwise null. */
  readonly batchReader: BatchReader | null;
  /** Whether delivered data is checked, except the samples of `checked`. */
  readonly checksum: boolean;
  /** Samples that need no further check, to which delivered samples are added. Null if every sample is checked each time. */
  readonly checked: CheckedSamples | null;
}

/**
 * Makes the reader of each epoch: one that keeps everything in memory if the whole dataset fits into the shuffle
 * buffers (the unit is a sample, and every block needs samples from everywhere), otherwise one that streams blocks.
 */
export class EpochReaders {
  readonly #options: EpochReadersOptions;
  #residents: Promise<Residents> | null = null;
  /** The batches for which the last epoch was read. */
  #lastDemand: Demand | null = null;

  /** Number of samples that may occur in any epoch. Repeated samples count each time. */
  readonly #samples: number;

  constructor(options: EpochReadersOptions) {
    this.#options = options;
    this.#samples = total(options.all.counts);
  }

  /**
   * Begins to read an epoch. `whole` is true if it is read from its first sample. `least` returns the minimum memory
   * with which the epoch can be read, in bytes.
   */
  async begin(plan: EpochPlan, whole: boolean, demand: Demand, least: () => Promise<number>): Promise<EpochReading> {
    const { history, checksum: when, canReadCrops, speed } = this.#options;
    const wasCached = history.begin(whole);
    const checked = when === 'first-epoch' && this.#staysAsChecked(plan) ? history.checked : null;
    const checksum = when !== 'never' && (checked === null || checked.count < this.#samples);
    const inShards = wasCached && (!checksum || checked !== null) && canReadCrops && !this.#options.files.isSlow;
    speed.begin(wasCached);
    if (plan.under === undefined) {
      const reader = await this.#reader(plan, demand, least, inShards);
      return { reader, batchReader: null, checksum, checked };
    }
    const blocks = await this.#reader(plan.under, demand, least, inShards);
    const batchReader = await this.#bucketReader(blocks, plan, demand, inShards);
    return { reader: batchReader, batchReader, checksum, checked };
  }

  /** Whether the bytes of an epoch are those of earlier epochs. A server sends them again, and they may change on the way. */
  #staysAsChecked(plan: EpochPlan): boolean {
    return !this.#options.files.isRemote || (plan.under ?? plan).unit === 'sample';
  }

  async #bucketReader(blocks: BlockReader, plan: EpochPlan, demand: Demand, inShards: boolean): Promise<BucketReader> {
    const { store, arena, held, holdBytes, wakeSignal, samplesOf } = this.#options;
    const common = { blocks, samplesOf, holdBytes, notify: () => wakeSignal.notify() };
    if (plan.unit === 'sample') {
      const residents = await this.#residents!;
      await residents.whenLoaded();
      const { shards } = residents;
      return new BucketReader({
        ...common,
        memory: null,
        singles: () => singlesOf((shard) => shards.get(shard)!, false),
      });
    }
    if (inShards) {
      const loaded = async (shard: number) => wholeShard(await store.indexes.index(shard));
      return new BucketReader({ ...common, memory: null, singles: () => singlesOf(loaded, true) });
    }
    return new BucketReader({
      ...common,
      memory: { blocks: arena, held },
      singles: (makeRoom) => new ReadSingles({ store, arena: held, wakeSignal, demand, makeRoom }),
    });
  }

  async #reader(
    plan: EpochPlan,
    demand: Demand,
    least: () => Promise<number>,
    inShards: boolean,
  ): Promise<BlockReader> {
    const { files, store, arena, wakeSignal, buffers, readConcurrency, samplesOf, staysInShards } = this.#options;
    files.throwIfClosed();
    const blocks = plan.blocks();
    if (staysInShards) return new UnreadReader({ blocks, samplesOf, store, ahead: this.#ahead(plan, demand) });
    if (plan.unit === 'sample') {
      const guarded = whileLoops(store, demand);
      this.#residents ??= this.#openResidents(plan, guarded);
      const residents = await this.#residents;
      await residents.readRest(guarded);
      return new ResidentReader({ blocks, samplesOf, residents, store, arena });
    }
    if (inShards) return new UnreadReader({ blocks, samplesOf, store, ahead: null });
    return new StreamingReader({
      blocks,
      samplesOf,
      store,
      arena,
      wakeSignal,
      buffers,
      readConcurrency,
      opening: this.#openingOf(plan),
      demand,
      leastBytes: least,
    });
  }

  #ahead(plan: EpochPlan, demand: Demand): AheadOptions {
    const { files, wakeSignal, buffers, readConcurrency, all, speed } = this.#options;
    // The first batch of a later epoch of the same loop is not urgent.
    const first = this.#lastDemand === demand ? undefined : plan.rows().next().value;
    this.#lastDemand = demand;
    return {
      wakeSignal,
      buffers,
      readConcurrency,
      demand,
      speed,
      firstRows: first?.block.length ?? 0,
      all: plan.unit === 'sample' ? () => selectedRows(files.samples, all) : null,
    };
  }

  #openingOf(plan: EpochPlan): Opening {
    const { isSlow, isRemote } = this.#options.files;
    if (!isSlow) return NO_OPENING;
    // Threads for slow files give these reads priority themselves. Other reads open the files of the next batches
    // first.
    return isRemote ? openingOf(plan) : { ...openingOf(plan), first: 0 };
  }

  /** Each stretch gets its own memory, because an allocation cannot be larger than a segment. */
  async #openResidents(plan: EpochPlan, store: ShardStore): Promise<Residents> {
    const { files, arena, all, samplesOf } = this.#options;
    const planned = await planLoad(selectedRows(files.samples, all), store);
    const shards = new Map<number, LoadedShard>();
    const placed = (stretches: readonly Stretch[]): Stretch[] =>
      stretches.map((stretch) => ({ ...stretch, at: this.#placeFor(stretch) }));
    for (const [shard, { index, stretches, crops }] of planned.shards) {
      shards.set(shard, {
        index,
        stretches: placed(stretches),
        crops: crops && { columns: crops.columns, stretches: placed(crops.stretches) },
      });
    }
    // If it is one read, it does not get shorter without the first samples.
    const isOpened = files.isSlow && planned.bytes > store.costs.profile.maxReadBytes;
    const residents = new Residents({ shards, arena, first: isOpened ? firstSamples(plan, samplesOf) : [] });
    await residents.open(store);
    if (!isOpened) await residents.whenLoaded();
    return residents;
  }

  #placeFor({ bytes }: Stretch): number {
    const { arena } = this.#options;
    const place = arena.allocate(bytes);
    if (place >= 0) return place;
    throw new ReadBufferError(
      {},
      sentence`The samples do not fit the read buffers of ${arena.capacity} bytes: raise ${optionName('readBufferBytes')}, or set ${optionName('shuffleUnit')} to 'chunk'.`,
    );
  }
}

/** Loading a whole dataset takes long, and the loop may end during that time. */
function whileLoops(store: ShardStore, demand: Demand): ShardStore {
  return whileWanted(store, () => {
    if (demand.isOver) throw new ReadBufferError({}, 'The loop ended while the loader was reading.');
  });
}
