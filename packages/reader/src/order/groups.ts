import { indexArray, OptionError, optionName, sentence } from '@shardtool/base';
import { type EpochPlan, type PlannedBatch, type PlannedBlock, type PlanOptions, planEpoch } from './batches.js';
import { layLine, unitOf } from './units.js';

/**
 * A custom order of groups. Each group goes as a whole to one rank and into one batch, with its samples in consecutive
 * rows.
 */
export interface GroupOptions extends PlanOptions {
  readonly positions: Uint32Array;
  /** Number of samples of a group. They are consecutive in `positions`. */
  readonly groupSize: number;
}

/**
 * Plans one rank's part of an epoch of groups, as the order of one sample per group. So rank r of w gets the groups r,
 * r + w, r + 2w and so on, and all counts of samples are multiples of `groupSize`. Throws {@link OptionError} if a
 * batch or an epoch would cut a group.
 */
export function planGroups(options: GroupOptions): EpochPlan {
  const { counts, positions, groupSize, globalBatch, worldSize = 1, blockSamples } = options;
  const groups = positions.length / groupSize;
  const inGroups = (name: string, samples: number) => {
    if (samples % groupSize === 0) return samples / groupSize;
    throw new OptionError(
      {},
      sentence`${optionName(name)} is ${samples}, but indices has groups of ${groupSize} samples that stay together: set a multiple of ${groupSize}.`,
    );
  };
  const plan = planEpoch({
    ...options,
    counts: [groups],
    positions: indexArray(groups),
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
      const { source, pass, number } = plan.at(Math.floor(position / groupSize));
      return { source, pass, number: positions[number * groupSize + (position % groupSize)]! };
    },
  };
}

/** Returns the number of groups in a block of `blockSamples` samples. */
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
