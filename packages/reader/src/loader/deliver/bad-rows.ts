import {
  type ErrorContext,
  escapeControls,
  OptionError,
  optionName,
  Sentence,
  ShardtoolError,
  sentence,
} from '@shardtool/base';
import { describeNpyRow } from '@shardtool/format';
import { shardTooShort } from '../../dataset/shard-length-error.js';
import { drawnValues, drawsAddress, type ViewLayout, viewAddress, viewBytes } from '../../views/slot-layout.js';
import { type Block, keyOf } from '../read/block.js';
import type { ExtraField } from '../ring/extra-fields.js';
import { WHOLE_BATCH } from '../ring/job.js';
import { slotAddress } from '../ring/slots.js';
import type { Engine } from '../work/engine.js';
import type { BatchOutput } from './finished-batch.js';
import type { PendingBatch, Trouble } from './pending-batch.js';
import type { Statistics } from './statistics.js';

/**
 * A custom step threw an error. `cause` has its message and its stack in the worker, which is appended to the message
 * of this error.
 */
export class CustomStepError extends ShardtoolError {
  static override readonly kind: string = 'CustomStepError';

  constructor(where: ErrorContext, message: string | Sentence, cause: Error) {
    super(where, message, { cause });
    this.message += `\n${escapeControls(cause.stack ?? '', '\n')}`;
  }
}

/** A sample that could not be read, checked or decoded. */
export class BadSampleError extends ShardtoolError {
  static override readonly kind: string = 'BadSampleError';
}

/** A reason as part of another sentence: without its full stop, if it has one. */
export function clauseOf(reason: string | Sentence): string | Sentence {
  if (typeof reason === 'string') return reason.replace(/\.$/, '');
  const last = reason.parts.at(-1);
  return typeof last === 'string' ? new Sentence([...reason.parts.slice(0, -1), last.replace(/\.$/, '')]) : reason;
}

export interface BadRowOptions {
  readonly engine: Engine;
  readonly statistics: Statistics;
  readonly shardName: (shard: number) => string;
  readonly onBad: 'raise' | 'skip' | 'replace';
  readonly output: BatchOutput;
  readonly extraFields: readonly ExtraField[];
  /** Whether samples are repeated: then a row cannot get another sample of its block. */
  readonly isRepeated: boolean;
}

/**
 * Raises an error for a bad row, skips it or replaces it, depending on the options. Returns true if the row has to be
 * decoded again.
 */
export function judgeRow(
  pending: PendingBatch,
  { row, reason, dropped = false, isOtherSize = false, otherArray, cut }: Trouble,
  options: BadRowOptions,
): boolean {
  const { onBad } = options;
  const block = pending.blocks[row]!;
  const item = pending.items[row]!;
  // Skipping such samples would silently select samples by size.
  if (isOtherSize) throw otherSize(reason, whereabouts(block, item, options), options.output);
  if (otherArray !== undefined) throw otherArrayError(otherArray, reason, whereabouts(block, item, options), options);
  if (dropped && options.isRepeated) {
    const { shard, key } = whereabouts(block, item, options);
    throw new OptionError(
      { shard, key },
      sentence`A custom step drops sample "${key}" of ${shard}, but no other sample can replace it with ${optionName('repeats')}: exclude such samples with ${optionName('where')} or ${optionName('keys')}, or remove ${optionName('repeats')}.`,
    );
  }
  if (dropped) pending.dropped.add(row);
  else if (onBad === 'raise') {
    const { shard, key } = whereabouts(block, item, options);
    if (cut !== undefined) throw shardTooShort(shard, cut.end, cut.needed);
    const what = sentence`${shard}: sample "${key}" cannot be used: ${clauseOf(reason)}.`;
    throw new BadSampleError(
      { shard, key },
      isOfLoader(reason)
        ? sentence`${what} Set ${optionName('onBad')} to 'skip' or 'replace': report() then lists such samples.`
        : sentence`${what} ${VERIFY}, or set ${optionName('onBad')} to 'skip' or 'replace'.`,
    );
  }
  if (!pending.reasons.has(row)) pending.reasons.set(row, reason);
  if (onBad === 'skip' && !dropped) {
    blankRow(pending, row, options);
    return false;
  }
  if (pending.planned.bucket !== undefined) return standIn(pending, row, options);
  const next = (item + 1) % block.items;
  if (next === pending.planned.item[row]) {
    const { shard, key } = whereabouts(block, next, options);
    throw new BadSampleError(
      { shard, key },
      sentence`${shard}: sample "${key}" cannot be used, and its block has no sample to replace it: ${clauseOf(pending.reasons.get(row)!)}. ${remedyOf(block.items, dropped || isOfLoader(pending.reasons.get(row)!))}`,
    );
  }
  pending.items[row] = next;
  return true;
}

const VERIFY = 'Run "shardtool verify --check decode" to list every bad sample';

/** Reasons that come from the transform: it does not accept an image, or two images should match and do not. */
const OF_TRANSFORM =
  /^(its field ".*": )?(it is \d+x\d+ pixels, (too small for|smaller than|but the image) |(the transform|randomRotation) makes it \d+x)|raise the option /;

/**
 * True if the packed data is intact, so that `verify` would report nothing: the loader needs a field that the sample
 * lacks, or its transform does not accept the image.
 */
function isOfLoader(reason: string | Sentence): boolean {
  const text = String(reason);
  return text.startsWith('it has no ') || OF_TRANSFORM.test(text);
}

/**
 * Returns a sentence, with a leading space, on how to find all samples with such a fault. Empty if `verify` does not
 * detect them.
 */
export function adviceOn(reason: string | Sentence): string {
  return isOfLoader(reason) ? '' : ` ${VERIFY}.`;
}

/** In a batch of one size, the next good sample of the batch takes the row, because it has the right size. */
function standIn(pending: PendingBatch, row: number, options: BadRowOptions): true {
  pending.own ??= { blocks: [...pending.blocks], items: pending.items.slice() };
  const { blocks, items } = pending.own;
  const next = ((pending.standIns.get(row) ?? row) + 1) % pending.rows;
  if (next === row) {
    const { shard, key } = whereabouts(blocks[row]!, items[row]!, options);
    const reason = pending.reasons.get(row)!;
    throw new BadSampleError(
      { shard, key },
      sentence`${shard}: sample "${key}" cannot be used, and its batch has no sample to replace it: ${clauseOf(reason)}. ${isOfLoader(reason) ? 'Choose' : `${VERIFY}, or choose`} larger batches.`,
    );
  }
  pending.standIns.set(row, next);
  pending.blocks[row] = blocks[next]!;
  pending.items[row] = items[next]!;
  return true;
}

function otherSize(
  reason: string | Sentence,
  { shard, key }: { readonly shard: string; readonly key: string },
  output: BatchOutput,
): OptionError {
  const isRagged = output.kind === 'pixels' && output.ragged !== null;
  const other = isRagged ? '' : sentence`, or set ${optionName('collate')} to 'list'`;
  return new OptionError(
    { shard, key },
    sentence`The images differ in size. Sample "${key}" of ${shard} is undamaged, but ${reason}. Add a resize and a crop to the transform ('train224' has both)${other}.`,
  );
}

function otherArrayError(
  field: string,
  reason: string | Sentence,
  { shard, key }: { readonly shard: string; readonly key: string },
  { extraFields }: BadRowOptions,
): OptionError {
  const first = extraFields.find((one) => one.field === field)!.array!;
  return new OptionError(
    { shard, key },
    sentence`The arrays of the field "${field}" differ. In sample "${first.key}" of ${first.shard} it is ${describeNpyRow(first)}, but in sample "${key}" of ${shard} ${reason}. Store arrays of one dtype and shape, set ${optionName('collate')} to 'list', or choose other ${optionName('fields')}.`,
  );
}

/** `isSound`: `verify` finds no fault in it. */
function remedyOf(items: number, isSound: boolean): Sentence {
  // If all samples fit into the shuffle buffer, this is the default, and a larger buffer changes nothing.
  const longer =
    items === 1
      ? 'Its block is 1 sample long: choose fewer streams (4 for a few hundred samples, 1 for a few)'
      : sentence`Its block is ${items} samples long: choose fewer streams, or a larger ${optionName('shuffleBufferSize')}`;
  return isSound ? sentence`${longer}.` : sentence`${longer}. ${VERIFY}.`;
}

/** Whether a bad sample was skipped in this row. */
export function isSkipped(pending: PendingBatch, row: number): boolean {
  return pending.skipped.has(row);
}

/** Counts the rows that were handled. Their contents do not change any more. */
export function countBadRows(pending: PendingBatch, options: BadRowOptions): void {
  const { statistics, onBad } = options;
  for (const [row, reason] of pending.reasons) {
    if (pending.dropped.has(row)) {
      statistics.countDropped();
      continue;
    }
    const block = pending.own?.blocks[row] ?? pending.blocks[row]!;
    const { shard, key } = whereabouts(block, pending.planned.item[row]!, options);
    const replaced = onBad === 'replace' ? { replacement: keyOf(pending.blocks[row]!, pending.items[row]!) } : {};
    statistics.countBad({ shard, key, reason, ...replaced });
  }
}

/** Returns the error that a custom step threw, for one row or for the whole batch. */
export function stepError(
  pending: PendingBatch,
  { row, reason, stack }: Trouble,
  options: Pick<BadRowOptions, 'shardName'>,
): CustomStepError {
  const cause = Object.assign(new Error(String(reason)), { stack });
  const at = Math.max(0, row);
  const { shard, key } = whereabouts(pending.blocks[at]!, pending.items[at]!, options);
  const where = row === WHOLE_BATCH ? `the batch that begins with sample "${key}"` : `sample "${key}"`;
  return new CustomStepError({ shard, key }, sentence`${shard}: ${where}: ${reason}`, cause);
}

function blankRow(pending: PendingBatch, row: number, { engine, output }: BadRowOptions): void {
  pending.valid[row] = 0;
  pending.skipped.add(row);
  engine.facts.setBlank(pending.slot, row);
  for (const values of Object.values(pending.fields)) values[row] = null;
  const { slot, rows, bucket } = pending;
  if (output.kind === 'pixels' && output.views !== null) {
    blankViews(engine, { slot, row, rows }, output.views);
    return;
  }
  engine.plan.rowBytes[bucket]!.extraFields.forEach((rowBytes, i) => {
    engine.extraFieldBytes(slot, i, rows, bucket).fill(0, row * rowBytes, (row + 1) * rowBytes);
  });
  if (output.kind === 'pixels' && output.ragged === null) {
    const { image } = engine.plan.rowBytes[bucket]!;
    engine.slotBytes(slot, rows, bucket).fill(0, row * image, (row + 1) * image);
    engine.facts.setShown(slot, row, null);
  } else if (output.kind === 'list') pending.list[row] = { pixels: new Uint8Array(0), height: 0, width: 0 };
}

function blankViews(
  { plan, memory }: Engine,
  { slot, row, rows }: { readonly slot: number; readonly row: number; readonly rows: number },
  views: ViewLayout,
): void {
  const address = slotAddress(plan, slot);
  const blank = (offset: number, length: number) => new Uint8Array(memory.buffer, address + offset, length).fill(0);
  for (const [group, { count }] of views.groups.entries()) {
    for (let view = 0; view < count; view++) {
      blank(viewAddress(views, plan.extraFields, { group, view, row, rows }), viewBytes(views.groups[group]!));
    }
  }
  if (views.draws.length === 0) return;
  blank(drawsAddress(views, plan.extraFields, row), views.transforms.length * drawnValues(views.draws) * 4);
}

function whereabouts(
  block: Block,
  item: number,
  { shardName }: Pick<BadRowOptions, 'shardName'>,
): { shard: string; key: string } {
  return { shard: shardName(block.shard[item]!), key: keyOf(block, item) };
}
