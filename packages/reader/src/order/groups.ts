import { OptionError, optionName, sentence } from '@shardtool/base';
import { type EpochPlan, type PlannedBatch, type PlannedBlock, type PlanOptions, planEpoch } from './batches.js';
import { layLine, unitOf } from './units.js';

/** A custom order of groups: each group goes to one rank as a whole, and into one batch, its samples in a row. */
export interface GroupOptions extends PlanOptions {
  readonly positions: Uint32Array;
  /** Samples of a group. They follow each other in `positions`. */
  readonly groupSize: number;
}

/**
 * Plans one rank's part of an epoch of groups: that of an order of as many samples, each of which then stands for its group. So
 * rank r of w has the groups r, r + w, r + 2w and so on, and all that is counted in samples is a multiple of `groupSize`. Throws
 * {@link OptionError} if a batch or an epoch would cut a group.
 */
export function planGroups(options: GroupOptions): EpochPlan {
  const { counts, positions, groupSize, globalBatch, worldSize = 1, blockSamples } = options;
  const groups = positions.length / groupSize;
  const inGroups = (name: string, samples: number) => {
    if (samples % groupSize === 0) return samples / groupSize;
    throw new OptionError(
      {},
      sentence`${optionName(name)} is ${samples}, and indices has groups of ${groupSize} samples that stay together: take a multiple of ${groupSize}.`,
    );
  };
  const plan = planEpoch({
    ...options,
    counts: [groups],
    positions: Uint32Array.from({ length: groups }, (_, group) => group),
    blockSamples: groupsOfBlock(blockSamples, groupSize),
    globalBatch: inGroups('batchSize', globalBatch / worldSize) * worldSize,
    position: inGroups('The position', options.position ?? 0),
    epochSamples: options.epochSamples && inGroups('samplesPerEpoch', options.epochSamples),
  });
  const unit = options.unit ?? unitOf(counts, options.streams, blockSamples);
  const line = layLine({ ...options, unit, shuffle: false, numbers: positions });
  const wholeBlock = (block: PlannedBlock): PlannedBlock => {
    const pieces = Array.from(block.samples, (group) => line.pieces(group * groupSize, (group + 1) * groupSize)).flat();
    return {
      ...block,
      samples: Uint32Array.from(pieces, ({ number }) => number),
      from: block.from * groupSize,
      pieces,
      uses: block.uses * groupSize,
    };
  };
  return {
    ...plan,
    samples: plan.samples * groupSize,
    batchSize: plan.batchSize * groupSize,
    unit,
    *blocks(): Generator<PlannedBlock, undefined> {
      for (const block of plan.blocks()) yield wholeBlock(block);
    },
    *rows(): Generator<PlannedBatch, undefined> {
      for (const batch of plan.rows()) yield wholeRows(batch, groupSize);
    },
    at(position) {
      const { pass, number } = plan.at(Math.floor(position / groupSize));
      return { pass, number: positions[number * groupSize + (position % groupSize)]! };
    },
  };
}

/** Groups in a block of so many samples. */
export function groupsOfBlock(blockSamples: number, groupSize: number): number {
  return Math.max(1, Math.round(blockSamples / groupSize));
}

function wholeRows({ index, block, item, valid, position }: PlannedBatch, groupSize: number): PlannedBatch {
  const each = (groups: Int32Array | Uint8Array, row: number) => groups[Math.floor(row / groupSize)]!;
  const rows = block.length * groupSize;
  return {
    index,
    block: new Int32Array(rows).map((_, row) => each(block, row)),
    item: new Int32Array(rows).map((_, row) => each(item, row) * groupSize + (row % groupSize)),
    valid: new Uint8Array(rows).map((_, row) => each(valid, row)),
    position: position * groupSize,
  };
}
