import type { ShardIndex } from '@shardtool/format';
import { ShardtoolError } from '@shardtool/format';
import { fieldBytes } from '../dataset/field-bytes.js';
import { type FieldValue, fieldValue } from '../dataset/field-values.js';
import type { Size } from '../transform/crops.js';
import type { DrawnMix } from '../transform/mix.js';
import type { Dtype } from '../transform/transform.js';
import type { Batch } from './batch.js';
import { type Block, placeOf } from './block.js';
import type { Companion } from './companions.js';
import type { WorkerMessage } from './decode-worker.js';
import type { Engine } from './engine.js';
import type { Feeder } from './feeder.js';
import { imageColumn } from './image-column.js';
import type { PendingBatch, Trouble } from './pending-batch.js';
import type { Statistics } from './statistics.js';
import type { Stretch } from './stretches.js';

/** A person's own step threw: `cause` has its message, and the stack where it was thrown in the worker. */
export class OwnStepError extends ShardtoolError {}

/** A sample could not be read, checked or decoded. */
export class BadSampleError extends ShardtoolError {}

export interface DeliveryOptions {
  readonly engine: Engine;
  readonly statistics: Statistics;
  readonly shardName: (shard: number) => string;
  readonly image: string | undefined;
  readonly onBadSample: 'raise' | 'skip' | 'substitute';
  readonly output: BatchOutput;
  readonly companions: readonly Companion[];
  /** Batches are worked on as a whole: by a person's own step, or to mix them. */
  readonly whole: boolean;
  /** How this batch was mixed; null where it was not. */
  mixOf(pending: PendingBatch): DrawnMix | null;
}

/** What the images of a batch are: pixels of one shape, a list, or encoded bytes. */
export type BatchOutput =
  | {
      readonly kind: 'pixels';
      readonly size: Size;
      readonly shape: readonly [number, number, number];
      readonly dtype: Dtype;
    }
  | { readonly kind: 'list' }
  | { readonly kind: 'raw' };

/** Waits until batches are full, deals with bad samples, and makes what the consumer gets. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #underWay = new Map<number, PendingBatch>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
    options.engine.listen((message) => this.#hear(message));
  }

  /** Workers' messages for this batch are kept with it from now on. */
  expect(pending: PendingBatch): void {
    this.#underWay.set(pending.slot, pending);
  }

  /** Resolves when every row is decoded or dealt with; throws what ended the workers, the reading, or a bad sample. */
  async whenComplete(pending: PendingBatch, feeder: Feeder): Promise<void> {
    await this.#whenFull(pending, feeder);
    for (let row = 0; row < pending.rows; row++) this.#readFields(pending, row);
    while (pending.bad.length > 0) {
      // A row may have more than one trouble: its image and a field.
      const bad = new Map(pending.bad.map((trouble) => [trouble.row, trouble]));
      pending.bad = [];
      const rows = [...bad.keys()].sort((a, b) => a - b);
      const again = rows.filter((row) => this.#judge(pending, bad.get(row)!));
      this.#decodeAgain(pending, again, feeder);
      await this.#whenFull(pending, feeder);
      for (const row of rows) this.#readFields(pending, row);
    }
    if (this.#options.whole) await this.#whenWhole(pending, feeder);
    for (const [row, reason] of pending.reasons) this.#count(pending, row, reason);
  }

  /** A row whose sample has no image never becomes a job: it is bad at once. */
  reject(pending: PendingBatch, row: number, reason: string): void {
    const { control } = this.#options.engine;
    pending.bad.push({ row, reason });
    pending.messages++;
    control.countPosted(pending.slot);
    control.finish(pending.slot);
  }

  /** The batch for the consumer. Blocks are still in memory; `release` is called at most once. */
  batch(pending: PendingBatch, release: () => void): Batch {
    const { engine, output } = this.#options;
    const { rows } = pending;
    this.#underWay.delete(pending.slot);
    const bytes = output.kind === 'pixels' ? engine.slotBytes(pending.slot, rows) : null;
    if (this.#options.whole) pending.labels.set(engine.facts.labels(pending.slot, rows));
    const mix = this.#options.mixOf(pending);
    let keys: readonly string[] | undefined;
    let released = false;
    return {
      epoch: pending.epoch,
      index: pending.planned.index,
      size: rows,
      images: bytes && valuesOf(bytes, output.kind === 'pixels' ? output.dtype : 'uint8'),
      dtype: output.kind === 'pixels' ? output.dtype : null,
      shape: output.kind === 'pixels' ? [rows, ...output.shape] : null,
      ...this.#companionsOf(pending),
      list: output.kind === 'list' ? pending.list : null,
      encoded: output.kind === 'raw' ? this.#encoded(pending) : null,
      labels: pending.labels,
      mix: mix && { name: mix.name, weight: mix.weight, otherLabels: rolled(pending.labels) },
      valid: pending.valid,
      numbers: pending.numbers,
      get keys() {
        keys ??= pending.blocks.map((block, row) => keyOf(block, pending.items[row]!));
        return keys;
      },
      fields: pending.fields,
      release() {
        if (released) return;
        released = true;
        release();
      },
    };
  }

  #companionsOf({ slot, rows }: PendingBatch): Pick<Batch, 'moreImages' | 'masks'> {
    const { engine, output, companions } = this.#options;
    const moreImages: Record<string, Uint8Array | Float32Array> = {};
    const masks: Record<string, Uint8Array> = {};
    for (const [i, { field, kind }] of companions.entries()) {
      const bytes = engine.companionBytes(slot, i, rows);
      if (kind === 'mask') masks[field] = bytes;
      else moreImages[field] = valuesOf(bytes, output.kind === 'pixels' ? output.dtype : 'uint8');
    }
    return { moreImages, masks };
  }

  #hear(message: WorkerMessage): void {
    if (message.kind === 'ready') return;
    const pending = this.#underWay.get(message.slot);
    if (pending === undefined) return;
    pending.messages++;
    if (message.kind === 'bad') pending.bad.push(message);
    else pending.list[message.row] = { pixels: message.pixels, height: message.height, width: message.width };
    this.#options.engine.bell.ring();
  }

  /** Rows are to be decoded once more; all of them where the batch has been worked on as a whole already. */
  #decodeAgain(pending: PendingBatch, rows: readonly number[], feeder: Feeder): void {
    const { engine, whole } = this.#options;
    const { control } = engine;
    if (whole && !control.isWholePending(pending.slot)) {
      control.openSlot(pending.slot, pending.rows, true);
      // As if a worker had reported trouble: the whole is left to this thread, which first reads the fields again.
      control.countPosted(pending.slot);
      pending.messages = 1;
      for (let row = 0; row < pending.rows; row++) {
        if (this.#isSkipped(pending, row)) control.finish(pending.slot);
        else feeder.push(pending, row);
      }
    } else if (rows.length > 0) {
      control.reopenSlot(pending.slot, rows.length);
      for (const row of rows) feeder.push(pending, row);
    }
    control.ring();
  }

  /** A batch without trouble is worked on by whoever finishes its last row; any other one when its rows are good. */
  async #whenWhole(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { engine } = this.#options;
    const { control } = engine;
    if (control.isWholePending(pending.slot) && control.posted(pending.slot) > 0) feeder.pushWhole(pending);
    while (control.isWholePending(pending.slot)) {
      this.#check(pending, feeder);
      await control.whenWhole(pending.slot);
    }
    await this.#whenHeard(pending, feeder);
  }

  #isSkipped(pending: PendingBatch, row: number): boolean {
    return pending.valid[row] === 0 && pending.reasons.has(row);
  }

  /** Every row is finished, for better or worse, and all that workers say about them has arrived. */
  async #whenFull(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { control } = this.#options.engine;
    while (!control.isFull(pending.slot)) {
      this.#check(pending, feeder);
      await control.whenFull(pending.slot);
    }
    await this.#whenHeard(pending, feeder);
    // What was not troubled is being worked on as a whole: it must not be touched meanwhile.
    if (this.#options.whole && pending.messages === 0) await this.#whenWhole(pending, feeder);
  }

  /** All that workers say about the batch has arrived. Throws what a person's own step threw. */
  async #whenHeard(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { control, bell } = this.#options.engine;
    while (pending.messages < control.posted(pending.slot)) {
      this.#check(pending, feeder);
      await bell.wait();
    }
    feeder.throwIfStopped();
    const thrown = pending.bad.filter(({ stack }) => stack !== undefined).sort((a, b) => a.row - b.row)[0];
    if (thrown !== undefined) throw this.#stepError(pending, thrown);
  }

  #check(pending: PendingBatch, feeder: Feeder): void {
    feeder.check(pending);
    const { failure } = this.#options.engine;
    if (failure !== undefined) throw failure;
  }

  #stepError(pending: PendingBatch, { row, reason, stack }: Trouble): OwnStepError {
    const cause = Object.assign(new Error(reason), { stack });
    const at = Math.max(0, row);
    const { shard, key } = this.#whereabouts(pending.blocks[at]!, pending.items[at]!);
    const where = row < 0 ? `the batch that begins with sample "${key}"` : `sample "${key}"`;
    return new OwnStepError({ shard, key }, `${shard}: ${where}: ${reason}\n${stack}`, { cause });
  }

  /** One bad row: raises, skips or substitutes, as the options say. True where it is to be decoded again. */
  #judge(pending: PendingBatch, { row, reason, dropped = false }: Trouble): boolean {
    const { onBadSample } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    if (dropped) pending.dropped.add(row);
    else if (onBadSample === 'raise') {
      const { shard, key } = this.#whereabouts(block, item);
      throw new BadSampleError(
        { shard, key },
        `${shard}: sample "${key}" cannot be used: ${reason}. Run "shardtool verify --decode" to list every bad sample, ` +
          "or set onBadSample to 'skip' or 'substitute'.",
      );
    }
    if (!pending.reasons.has(row)) pending.reasons.set(row, reason);
    if (onBadSample === 'skip' && !dropped) {
      this.#blank(pending, row);
      return false;
    }
    const next = (item + 1) % block.items;
    if (next === pending.planned.item[row]) {
      const { shard, key } = this.#whereabouts(block, next);
      throw new BadSampleError(
        { shard, key },
        `${shard}: no sample of the block of "${key}" can take its row; it cannot be used itself: ` +
          `${pending.reasons.get(row)}. Run "shardtool verify --decode" to list every bad sample.`,
      );
    }
    pending.items[row] = next;
    return true;
  }

  #blank(pending: PendingBatch, row: number): void {
    const { engine, output } = this.#options;
    pending.valid[row] = 0;
    for (const values of Object.values(pending.fields)) values[row] = null;
    const { rowBytes } = engine.plan;
    if (output.kind === 'pixels') {
      engine.slotBytes(pending.slot, pending.rows).fill(0, row * rowBytes, (row + 1) * rowBytes);
      engine.plan.companions.forEach((companion, i) => {
        const bytes = engine.companionBytes(pending.slot, i, pending.rows);
        bytes.fill(0, row * companion.rowBytes, (row + 1) * companion.rowBytes);
      });
    } else if (output.kind === 'list') pending.list[row] = { pixels: new Uint8Array(0), height: 0, width: 0 };
  }

  #count(pending: PendingBatch, row: number, reason: string): void {
    const { statistics, onBadSample } = this.#options;
    if (pending.dropped.has(row)) {
      statistics.countDropped();
      return;
    }
    const block = pending.blocks[row]!;
    const { shard, key } = this.#whereabouts(block, pending.planned.item[row]!);
    const substitute = onBadSample === 'substitute' ? { substitute: keyOf(block, pending.items[row]!) } : {};
    statistics.countBad({ shard, key, reason, ...substitute });
  }

  #whereabouts(block: Block, item: number): { shard: string; key: string } {
    return { shard: this.#options.shardName(block.shard[item]!), key: keyOf(block, item) };
  }

  #encoded(pending: PendingBatch): Uint8Array[] {
    const { engine, image } = this.#options;
    return pending.blocks.map((block, row) => {
      const { index, indexRow, stretches } = locate(block, pending.items[row]!);
      const column = imageColumn(index, image);
      const offset = column.offset[indexRow]!;
      if (offset < 0) return new Uint8Array(0);
      return engine.arena.view(placeOf(block, stretches, offset), column.bytes[indexRow]!);
    });
  }

  /** The values of a row's fields. One that cannot be read makes the sample a bad one. */
  #readFields(pending: PendingBatch, row: number): void {
    if (this.#isSkipped(pending, row)) return;
    const block = pending.blocks[row]!;
    for (const name in pending.fields) {
      try {
        pending.fields[name]![row] = this.#field(block, pending.items[row]!, name);
      } catch (error) {
        const { message } = ((error as Error).cause ?? error) as Error;
        pending.bad.push({ row, reason: `field "${name}" is not what its name says (${message})` });
        return;
      }
    }
  }

  #field(block: Block, item: number, name: string): FieldValue | null {
    const { index, indexRow, stretches } = locate(block, item);
    const column = index.fields.get(name);
    const offset = column?.offset[indexRow] ?? -1;
    if (column === undefined || offset < 0) return null;
    const stored = this.#options.engine.arena.view(placeOf(block, stretches, offset), column.bytes[indexRow]!);
    return fieldValue(name, fieldBytes(stored, column, indexRow, { ...this.#whereabouts(block, item), field: name }));
  }
}

function locate(block: Block, item: number): { index: ShardIndex; indexRow: number; stretches: readonly Stretch[] } {
  const { index, stretches } = block.shards.get(block.shard[item]!)!;
  return { index, indexRow: block.row[item]!, stretches };
}

function keyOf(block: Block, item: number): string {
  const { index, indexRow } = locate(block, item);
  return index.key[indexRow]!;
}

/** The labels of the rows before: the first row's is the last one. */
function rolled(labels: Int32Array): Int32Array {
  return labels.map((_, row) => labels.at(row - 1)!);
}

function valuesOf(bytes: Uint8Array, dtype: Dtype): Uint8Array | Float32Array {
  return dtype === 'float32' ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4) : bytes;
}
