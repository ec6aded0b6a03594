import { optionName, type Sentence, sentence } from '@shardtool/base';
import type { FieldColumns } from '@shardtool/format';
import { columnsText } from '../../../annotations/columns-text.js';
import { type CutShards, cutReason } from '../../../dataset/shards/cut-shards.js';
import { locate, partOf, placeOf } from '../../read/block.js';
import { raggedImagesIn } from '../../read/ragged-columns.js';
import { keptImageColumn } from '../../read/readers/image-column.js';
import type { BatchFacts } from '../../ring/batch-facts.js';
import type { ColumnTexts } from '../../ring/column-texts.js';
import type { Control } from '../../ring/control.js';
import type { ExtraField, PartTable } from '../../ring/extra-fields.js';
import { emptyJob, IN_ARENA, UNCHECKED, wholeBatchJob } from '../../ring/job.js';
import type { SampleOrigin } from '../../setup/order/order-sources.js';
import type { RaggedImages } from '../../setup/ragged-images.js';
import type { PendingBatch } from '../pending-batch.js';

export interface RowJobsOptions {
  readonly control: Control;
  readonly image: string | undefined;
  /** False: rows have only extra fields. */
  readonly hasImages: boolean;
  readonly extraFields: readonly ExtraField[];
  /** The images of each sample, if their number varies. Null if each sample has one. */
  readonly ragged: RaggedImages | null;
  readonly parts: PartTable;
  readonly texts: ColumnTexts;
  readonly facts: BatchFacts;
  /** Batches are processed as a whole when all of their rows are finished. */
  readonly whole: boolean;
  readonly origin: SampleOrigin;
  /** Shards whose bytes in memory are zeros from their end on. */
  readonly cuts: CutShards;
}

/** Publishes jobs for the workers: one per row of a batch, and one for a batch as a whole. */
export class RowJobs {
  readonly #options: RowJobsOptions;
  readonly #job = emptyJob();

  constructor(options: RowJobsOptions) {
    this.#options = options;
  }

  /**
   * Publishes the job of one row, from the block and item that `pending` names for it. A row whose sample cannot be used
   * never becomes a job: it is finished, and bad.
   */
  push(pending: PendingBatch, row: number): void {
    const { control } = this.#options;
    const reason = this.#prepare(pending, row);
    if (reason === null) {
      control.push(this.#job);
      return;
    }
    pending.bad.push({ row, reason });
    pending.messages++;
    control.slots.countPosted(pending.slot);
    control.slots.finish(pending.slot);
  }

  /** Publishes the job of the batch as a whole. */
  pushWhole(pending: PendingBatch): void {
    const { control } = this.#options;
    control.push(wholeBatchJob(pending.slot, pending.bucket));
    control.notify();
  }

  /** Number of images that a row will have in a batch with several images per sample; 0 if its sample cannot be used. */
  imagesOf(pending: PendingBatch, row: number): number {
    const { cuts, ragged } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const { index, indexRow } = locate(block, item);
    const images = raggedImagesIn(index, indexRow, ragged!.patterns).length;
    const isCut = index.offset[indexRow]! + index.bytes[indexRow]! > cuts.endOf(block.shard[item]!);
    return isCut || images > ragged!.max ? 0 : images;
  }

  /**
   * Fills in the job of a row, and the data next to it in shared memory. Returns null, or the reason why the sample
   * cannot be used.
   */
  #prepare(pending: PendingBatch, row: number): string | Sentence | null {
    const { origin, cuts, image, hasImages, extraFields, facts, whole, ragged } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const shard = block.shard[item]!;
    const indexRow = block.row[item]!;
    const { index, stretches, crops } = block.shards.get(shard)!;
    const column = hasImages && ragged === null ? keptImageColumn(index, image) : null;
    const offset = column === null ? 0 : column.offset[indexRow]!;
    const job = this.#job;
    pending.labels[row] = index.cls[indexRow]!;
    job.number = origin.firstSample[shard]! + indexRow;
    pending.numbers[row] = job.number;
    job.source = origin.sourceOfShard === null ? 0 : origin.sourceOfShard[shard]!;
    pending.sources[row] = job.source;
    if (pending.imageOffsets !== null) pending.imageOffsets[row + 1] = pending.imageOffsets[row]!;
    if (offset < 0) return 'it has no image';
    const end = block.inShards ? Number.POSITIVE_INFINITY : cuts.endOf(shard);
    // Few shards are cut, and each column that is used costs time for every row.
    if (end < Number.POSITIVE_INFINITY) {
      const needed = index.offset[indexRow]! + index.bytes[indexRow]!;
      if (needed > end) return cutReason({ end, needed });
    }
    if (ragged !== null) {
      const images = this.#placeImages(pending, row, ragged);
      if (images > ragged.max) return tooManyImages(images, ragged.max);
      pending.imageOffsets![row + 1] = pending.imageOffsets![row]! + images;
      facts.setFirstImage(pending.slot, row, pending.imageOffsets![row]!);
    }
    job.shard = block.inShards ? shard : IN_ARENA;
    job.offset = column === null ? 0 : placeOf(block, stretches, offset);
    job.bytes = column === null ? 0 : column.bytes[indexRow]!;
    job.epoch = block.pass;
    job.occurrence = block.occurrence[item]!;
    job.slot = pending.slot;
    job.row = row;
    job.bucket = pending.bucket;
    job.orientation = index.orientation[indexRow]!;
    job.crc32 = (pending.isChecked(row) ? column?.crc32?.[indexRow] : undefined) ?? UNCHECKED;
    // The crop index is that of the image that is used if the option `image` is not set.
    const isOfCrops = crops !== null && column?.offset === keptImageColumn(index, undefined).offset;
    job.cropBytes = isOfCrops ? crops.columns.bytes[indexRow]! : 0;
    if (job.cropBytes > 0) {
      job.cropOffset = placeOf(block, crops!.stretches, crops!.columns.offset[indexRow]!);
      job.cropCrc32 = column?.crc32?.[indexRow] ?? UNCHECKED;
    }
    if (whole) {
      facts.setLabel(pending.slot, row, pending.labels[row]!);
      if (row === 0) facts.setFirst(pending.slot, job);
    }
    return extraFields.length === 0 ? null : this.#placeParts(pending, row);
  }

  /** Writes where the images of the sample are. Returns their number, which may be too high. */
  #placeImages(pending: PendingBatch, row: number, { patterns, max }: RaggedImages): number {
    const block = pending.blocks[row]!;
    const located = locate(block, pending.items[row]!);
    const images = raggedImagesIn(located.index, located.indexRow, patterns);
    const isChecked = pending.isChecked(row);
    for (let i = 0; i < max; i++) {
      const column = images[i]?.column;
      const part = column === undefined ? null : partOf(block, located, column, isChecked);
      this.#options.parts.set(pending.slot, row, i, part);
    }
    return images.length;
  }

  /** Writes where the extra fields of the sample are. Returns null, or the reason why the sample cannot be used. */
  #placeParts(pending: PendingBatch, row: number): string | null {
    const { extraFields, parts, texts } = this.#options;
    const { slot } = pending;
    const block = pending.blocks[row]!;
    const located = locate(block, pending.items[row]!);
    const isChecked = pending.isChecked(row);
    const { index, indexRow } = located;
    for (const [i, { field, columns }] of extraFields.entries()) {
      if (columns !== undefined) {
        const place = texts.put(slot, columnsText(index.columns, columns, indexRow));
        if (place === null)
          return `its column "${field}" is too long to fit next to those of the other rows of its batch`;
        parts.set(slot, row, i, { ...place, crc32: UNCHECKED, msgpack: false });
        continue;
      }
      const column = index.fields.get(field);
      parts.set(slot, row, i, hasField(column, indexRow) ? partOf(block, located, column, isChecked) : null);
    }
    return null;
  }
}

function hasField(column: FieldColumns | undefined, indexRow: number): column is FieldColumns {
  return column !== undefined && column.offset[indexRow]! >= 0;
}

function tooManyImages(images: number, max: number): Sentence {
  return sentence`it has ${images} images, more than the option ${optionName('maxImages')} allows (${max}): raise the option ${optionName('maxImages')}`;
}
