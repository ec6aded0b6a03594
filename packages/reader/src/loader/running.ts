import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { CheckedOptions } from './options.js';
import { EpochReaders } from './read/readers/epoch-readers.js';
import type { ReadHistory } from './read/readers/read-history.js';
import { ReadSpeed } from './read/readers/read-speed.js';
import { FreeSlots } from './ring/free-slots.js';
import { raggedRowsOf } from './setup/decoder-output.js';
import type { LoaderSetup } from './setup.js';
import { Engine } from './work/engine.js';
import type { Workers } from './work/start-workers.js';

/** Resources that are kept between iterations. */
export interface Running {
  readonly engine: Engine;
  readonly readers: EpochReaders;
  /** The output that the engine was started for. */
  readonly output: LoaderSetup['output'];
}

/** Lays out the memory, and gives the decode workers their work. If this fails, it ends them. `slotFileSlots`: the slots that are free in the option `slotFile`. */
export async function startRunning(
  { order, output, store, memory, staysInShards }: LoaderSetup,
  context: {
    readonly dataset: StoredDataset;
    readonly options: CheckedOptions;
    readonly history: ReadHistory;
    readonly slotFileSlots: FreeSlots;
  },
  workers: Workers,
  giveUp: AbortSignal,
): Promise<Running> {
  const { files } = context.dataset;
  const { checksum, readConcurrency, slotFile, holdBytes } = context.options;
  const { decoder, extraFields, annotations, steps, mixes, isUncompressedOnly } = output;
  const engineOptions = {
    plan: memory.slots,
    rows: order.batchSize,
    arenaBytes: memory.readBuffers.reservedBytes,
    heldBytes: memory.heldBytes,
    decoder: decoder && { ...decoder, seeds: order.origin.seeds },
    list: output.batch.kind === 'list',
    hasImages: output.batch.kind !== 'fields',
    views: output.batch.kind === 'pixels' ? output.batch.views : null,
    ragged: raggedRowsOf(output.batch),
    extraFields,
    annotations,
    steps,
    mixes,
    shardPaths: staysInShards || (isUncompressedOnly && !files.isRemote) ? files.files.map(({ path }) => path) : [],
    readsCrops: isUncompressedOnly,
    slotFile,
    freeSlots: slotFile === undefined ? new FreeSlots() : context.slotFileSlots,
  };
  const engine = await Engine.start(engineOptions, workers, giveUp).catch(async (error: unknown) => {
    await workers.close();
    throw error;
  });
  const readers = new EpochReaders({
    files,
    store,
    arena: engine.arena,
    held: engine.held,
    holdBytes,
    wakeSignal: engine.wakeSignal,
    buffers: memory.readBuffers.buffers,
    readConcurrency,
    all: order.all,
    samplesOf: order.samplesOf,
    history: context.history,
    checksum,
    staysInShards,
    canReadCrops: isUncompressedOnly,
    speed: new ReadSpeed(engine.control),
  });
  return { engine, readers, output };
}
