import type { PlannedBatch } from '../order/batches.js';
import type { ImageArray } from './batch.js';
import type { Block } from './block.js';
import type { BadRow } from './decode-worker.js';

/** A batch on its way: from the moment it has a slot until the consumer gives the slot back. */
export class PendingBatch {
  readonly slot: number;
  readonly epoch: number;
  readonly planned: PlannedBatch;
  /** Whether its images' crc32 is checked. */
  readonly checksum: boolean;
  /** Per row: the block and the item of it that the row shows (or was to show, where it was substituted). */
  readonly blocks: Block[];
  readonly items: Int32Array;
  readonly labels: Int32Array;
  readonly numbers: Float64Array;
  readonly valid: Uint8Array;
  /** Blocks whose last row is in this batch. */
  readonly finished: Block[] = [];
  /** Rows that workers have reported as bad and that are not yet dealt with. */
  bad: BadRow[] = [];
  readonly list: ImageArray[] = [];
  /** Messages of workers for this batch that have arrived. */
  messages = 0;
  /** When its last job was given out; Infinity before. */
  issuedAt = Number.POSITIVE_INFINITY;

  constructor(slot: number, epoch: number, checksum: boolean, planned: PlannedBatch) {
    const rows = planned.block.length;
    this.slot = slot;
    this.epoch = epoch;
    this.checksum = checksum;
    this.planned = planned;
    this.blocks = new Array<Block>(rows);
    this.items = planned.item.slice();
    this.labels = new Int32Array(rows);
    this.numbers = new Float64Array(rows);
    this.valid = planned.valid.slice();
  }

  get rows(): number {
    return this.blocks.length;
  }
}
