import type { Mixes } from '../../../transform/mixes/mix-option.js';
import { softLabels } from '../../../transform/mixes/soft-labels.js';
import { keyOf } from '../../read/block.js';
import type { LabelSource } from '../../setup/labels-option.js';
import type { Engine } from '../../work/engine.js';
import type { PendingBatch } from '../pending-batch.js';
import type { Batch } from './batch.js';
import { mixOf } from './batch-mix.js';
import { encodedImages } from './encoded-images.js';
import { type LabelValues, labelValues } from './label-values.js';
import { rowSeeds } from './row-seeds.js';
import { owned, type SlotArraysOptions, slotArrays } from './slot-arrays.js';

export interface FinishedBatchOptions extends SlotArraysOptions {
  readonly engine: Engine;
  readonly image: string | undefined;
  /** True if batches are processed as a whole: by a custom step, or to mix them. */
  readonly whole: boolean;
  /** Source of labels that are not class numbers. */
  readonly labels: LabelSource | null;
  /** The ways to mix batches. */
  readonly mixes: Mixes;
  readonly isMixture: boolean;
  /** The seed of each dataset. */
  readonly seeds: readonly number[];
}

/** The complete batch for the consumer. Its blocks are still in memory; `release` is called at most once. */
export function finishedBatch(pending: PendingBatch, options: FinishedBatchOptions, release: () => void): Batch {
  const { engine, output } = options;
  const { slot, rows } = pending;
  const arrays = slotArrays(pending, engine.contents(pending), options);
  if (options.whole) pending.labels.set(engine.facts.labels(slot, rows));
  const mix = options.whole ? mixOf(pending, engine.facts, options.mixes) : null;
  let keys: readonly string[] | undefined;
  let seeds: Uint32Array | undefined;
  let soft: Float32Array | undefined;
  let taken: LabelValues | undefined;
  let released = false;
  return {
    epoch: pending.epoch,
    index: pending.planned.index,
    size: rows,
    ...arrays,
    ...(pending.imageOffsets === null ? {} : { offsets: pending.imageOffsets.slice() }),
    list: output.kind === 'list' ? pending.list : null,
    encoded:
      output.kind === 'raw'
        ? encodedImages(pending, engine, options.image).map((bytes) => owned(bytes, options))
        : null,
    labels: pending.labels,
    crop: engine.facts.shown(slot, rows),
    mix,
    get labelValues() {
      if (options.labels === null) return null;
      taken ??= labelValues(pending.fields[options.labels.field]!, pending.valid, options.labels);
      return taken;
    },
    get softLabels() {
      if (mix === null || mix.numClasses === null) return null;
      soft ??= softLabels(
        { labels: pending.labels, valid: pending.valid, ...mix },
        { ...mix, numClasses: mix.numClasses },
      );
      return soft;
    },
    valid: pending.valid,
    indices: pending.numbers,
    datasetIndex: options.isMixture ? pending.sources : null,
    get keys() {
      keys ??= pending.blocks.map((block, row) => keyOf(block, pending.items[row]!));
      return keys;
    },
    get rowSeeds() {
      seeds ??= rowSeeds(pending, options.seeds);
      return seeds;
    },
    fields: pending.fields,
    release() {
      if (released) return;
      released = true;
      release();
    },
  };
}
