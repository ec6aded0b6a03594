import { availableParallelism } from 'node:os';
import type { Dataset } from '../../dataset/dataset.js';
import { scratchBytesFor } from '../../decoder.js';
import type { CheckedOptions } from '../options.js';
import type { PlannedStore } from '../read/load-shards.js';
import { planReadBuffers, type ReadBufferPlan } from '../read/read-buffers.js';
import { type MemoryPlan, planMemory } from '../ring/slots.js';
import type { LoaderOrder } from './order.js';
import type { LoaderOutput } from './output.js';

/** How much lies where. */
export interface LoaderMemory {
  /** The batch slots and the workers' scratch. */
  readonly slots: MemoryPlan;
  /** Encoded samples. */
  readonly readBuffers: ReadBufferPlan;
}

type MemoryRequest = Pick<CheckedOptions, 'prefetchBatches' | 'workers' | 'maxPixels' | 'readBufferBytes'>;

/** Lays the memory out. Throws OptionError where it does not suffice. */
export async function setUpMemory(
  dataset: Dataset,
  store: PlannedStore,
  order: LoaderOrder,
  output: LoaderOutput,
  options: MemoryRequest,
): Promise<LoaderMemory> {
  const { batchSize, streams, worldSize } = order;
  const { prefetchBatches } = options;
  const slots = planMemory({
    slots: prefetchBatches,
    rows: batchSize,
    rowBytes: output.rowBytes,
    companionRowBytes: output.companionRowBytes,
    workers: options.workers ?? availableParallelism(),
    scratchBytes: output.decoder === null ? 0 : scratchBytesFor(output.decoder.transform, options.maxPixels),
  });
  dataset.files.keepIndexes(Math.min(dataset.shards.length, 2 * (streams / worldSize) + 16));
  const begin = order.isOver ? { epoch: order.begin.epoch + 1, position: 0 } : order.begin;
  const readBuffers = await planReadBuffers({
    dataset,
    store,
    unit: order.unit,
    selection: order.selection(begin.epoch),
    upcoming: order.upcoming(begin),
    all: order.all,
    held: order.held(prefetchBatches),
    limitBytes: options.readBufferBytes,
  });
  return { slots, readBuffers };
}
