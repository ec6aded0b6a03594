import type { Sentence } from '@shardtool/base';
import { nameTable } from '@shardtool/format';
import type { FieldValue } from '../../dataset/fields/field-values.js';
import type { PlannedBatch } from '../../order/batches.js';
import type { Block } from '../read/block.js';
import type { CheckedSamples } from '../read/readers/checked-samples.js';
import type { ImageArray } from './batch/batch.js';
import type { FedEpoch } from './feed/feeder.js';

/** A row whose sample cannot be used. `reason` is a sentence without shard and key. */
export interface Trouble {
  readonly row: number;
  readonly reason: string | Sentence;
  /** True if a custom step dropped it. */
  readonly dropped?: boolean;
  /** True if the transform gave it another size than the batch has. */
  readonly isOtherSize?: boolean;
  /** Name of a field whose array has another dtype or shape than the rows of the batch. */
  readonly otherArray?: string;
  /** The end of a shard that is shorter than its index says, and that of the image. */
  readonly cut?: { readonly end: number; readonly needed: number };
  /** Location of an error that a custom step threw. */
  readonly stack?: string;
}

/** A sample that could not be used. `reason` is a sentence without shard and key. */
export interface Fault {
  readonly shard: string;
  readonly key: string;
  readonly reason: string | Sentence;
}

/** A batch in progress: from the moment it has a slot until the consumer releases the slot. */
export class PendingBatch {
  readonly slot: number;
  readonly epoch: number;
  readonly planned: PlannedBatch;
  readonly #transform: number;
  /** Whether the crc32 of its images and fields is checked, except for the samples of `#checked`. */
  readonly #checksum: boolean;
  readonly #checked: CheckedSamples | null;
  /**
   * For each row, the block and the item of the block that the row shows. For a replaced row, those of the sample that
   * replaces its own.
   */
  readonly blocks: Block[];
  readonly items: Int32Array;
  readonly labels: Int32Array;
  readonly numbers: Float64Array;
  /** For a mixture, the dataset of each row. */
  readonly sources: Int32Array;
  readonly valid: Uint8Array;
  readonly list: ImageArray[] = [];
  /** Values of other fields of the complete rows, by name. */
  readonly fields: Record<string, (FieldValue | null)[]>;
  /**
   * With several images per sample: row i has the images `imageOffsets[i]` to `imageOffsets[i + 1] - 1` of the batch,
   * int32 [rows + 1]. Otherwise null.
   */
  readonly imageOffsets: Int32Array | null;
  /** Blocks whose last row is in this batch. */
  readonly finished: Block[] = [];
  /** Frees the memory of samples that waited for this batch. Null if there are none. */
  letGo: (() => void) | null = null;
  /** Troubles that were reported and not handled yet. */
  bad: Trouble[] = [];
  /** For each row that was handled, the planned sample, and why it could not be used. */
  readonly faults = new Map<number, Fault>();
  /** For each row whose bytes were wrong and were fetched once more, its item. */
  readonly fetchedAgain = new Map<number, number>();
  /** Blocks and items as planned. It is set when a row of a batch of one size gets another sample of the batch. */
  own: { readonly blocks: readonly Block[]; readonly items: Int32Array } | null = null;
  /** For each row, the row whose sample replaces its own. */
  readonly standIns = new Map<number, number>();
  /** Rows whose bad sample was skipped. A row that pads the batch is not valid either, but has a sample. */
  readonly skipped = new Set<number>();
  /** Rows whose own sample was dropped by a custom step. */
  readonly dropped = new Set<number>();
  /** Messages of workers for this batch that have arrived. */
  messages = 0;
  /** Number of rows that were assigned, starting with the first. */
  given = 0;
  /** Time at which its last row was assigned; Infinity before that. */
  issuedAt = Number.POSITIVE_INFINITY;
  /** Time for which the feeder had been blocked by then. */
  blockedAtIssue = { storage: 0, order: 0 };
  /** Time at which all rows had been decoded for the first time. */
  decodedAt = Number.POSITIVE_INFINITY;
  /** Milliseconds of waiting for rows that had to be read again. */
  againMs = 0;

  constructor(
    slot: number,
    planned: PlannedBatch,
    { epoch, checksum, checked, transform }: Pick<FedEpoch, 'epoch' | 'checksum' | 'checked' | 'transform'>,
    fields: readonly string[],
    isRagged = false,
  ) {
    const rows = planned.block.length;
    this.slot = slot;
    this.epoch = epoch;
    this.planned = planned;
    this.#transform = transform;
    this.#checksum = checksum;
    this.#checked = checked;
    this.blocks = new Array<Block>(rows);
    this.items = planned.item.slice();
    this.labels = new Int32Array(rows);
    this.numbers = new Float64Array(rows);
    this.sources = new Int32Array(rows);
    this.imageOffsets = isRagged ? new Int32Array(rows + 1) : null;
    this.valid = planned.valid.slice();
    this.fields = nameTable(fields.map((name) => [name, new Array<FieldValue | null>(rows).fill(null)]));
  }

  /** Index of its size: that of its bucket, or of the transform of its epoch. */
  get bucket(): number {
    return this.planned.bucket?.bucket ?? this.#transform;
  }

  /** Whether the bytes of the sample that a row shows are checked. */
  isChecked(row: number): boolean {
    if (!this.#checksum || this.#checked === null) return this.#checksum;
    const block = this.blocks[row]!;
    const item = this.items[row]!;
    return !this.#checked.has(block.shard[item]!, block.row[item]!);
  }

  /** Notes that the samples of the batch, which is delivered, need no further check. A sample that was skipped does. */
  noteChecked(): void {
    if (!this.#checksum || this.#checked === null) return;
    for (let row = 0; row < this.rows; row++) {
      if (this.skipped.has(row)) continue;
      const block = this.blocks[row]!;
      const item = this.items[row]!;
      this.#checked.add(block.shard[item]!, block.row[item]!);
    }
  }

  get rows(): number {
    return this.blocks.length;
  }

  /** True if every row was assigned to the workers, so that only they can delay the batch. */
  get isIssued(): boolean {
    return this.given === this.rows;
  }
}
