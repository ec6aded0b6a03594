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
import { shardTooShort } from '../../../dataset/shards/shard-length-error.js';
import { type Block, keyOf } from '../../read/block.js';
import type { ExtraField } from '../../ring/extra-fields.js';
import { WHOLE_BATCH } from '../../ring/job.js';
import type { BatchOutput } from '../../setup/batch-output.js';
import type { Engine } from '../../work/engine.js';
import type { Fault, PendingBatch, Trouble } from '../pending-batch.js';
import type { Statistics } from '../statistics.js';
import { blankRow } from './blank-row.js';

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

/** Returns the name of a shard, and its path for messages. */
export type ShardAt = (shard: number) => { readonly name: string; readonly path: string };

export interface BadRowOptions {
  readonly engine: Engine;
  readonly statistics: Statistics;
  readonly shardAt: ShardAt;
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
  const [block, item] = [pending.blocks[row]!, pending.items[row]!];
  const sample = whereabouts(block, item, options);
  const { shard, key } = sample;
  // Skipping such samples would silently select samples by size.
  if (isOtherSize) throw otherSize(reason, sample, options.output);
  if (otherArray !== undefined) throw otherArrayError(otherArray, reason, sample, options);
  if (dropped && options.isRepeated) {
    throw new OptionError(
      sample,
      sentence`A custom step drops sample "${key}" of ${shard}, but no other sample can replace it with ${optionName('repeats')}: exclude such samples with ${optionName('where')} or ${optionName('keys')}, or remove ${optionName('repeats')}.`,
    );
  }
  if (dropped) pending.dropped.add(row);
  else if (onBad === 'raise') {
    if (cut !== undefined) throw shardTooShort(options.shardAt(block.shard[item]!), cut.end, cut.needed);
    const what = sentence`${shard}: sample "${key}" cannot be used: ${clauseOf(reason)}.`;
    throw new BadSampleError(
      sample,
      isOfLoader(reason)
        ? sentence`${what} Set ${optionName('onBad')} to 'skip' or 'replace': report() then lists such samples.`
        : sentence`${what} ${VERIFY}, or set ${optionName('onBad')} to 'skip' or 'replace'.`,
    );
  }
  // Of a row, the first bad sample is the planned one. Later ones are replacements.
  const fault = pending.faults.get(row) ?? { ...sample, reason };
  pending.faults.set(row, fault);
  if (onBad === 'skip' && !dropped) {
    blankRow(pending, row, options.engine, options.output);
    return false;
  }
  replaceSample(pending, row, fault, dropped);
  return true;
}

/**
 * Gives a row another sample: the next one of its block, or in a batch of one size the next one of the batch, because it
 * has the right size. Throws if all of them were tried.
 */
function replaceSample(pending: PendingBatch, row: number, fault: Fault, dropped: boolean): void {
  const isSound = isOfLoader(fault.reason);
  if (pending.planned.bucket !== undefined) {
    pending.own ??= { blocks: [...pending.blocks], items: pending.items.slice() };
    const { blocks, items } = pending.own;
    const next = ((pending.standIns.get(row) ?? row) + 1) % pending.rows;
    if (next === row)
      throw noReplacement(fault, 'batch', isSound ? 'Choose larger batches.' : `${VERIFY}, or choose larger batches.`);
    pending.standIns.set(row, next);
    pending.blocks[row] = blocks[next]!;
    pending.items[row] = items[next]!;
    return;
  }
  const { items } = pending.blocks[row]!;
  const next = (pending.items[row]! + 1) % items;
  if (next === pending.planned.item[row]) throw noReplacement(fault, 'block', remedyOf(items, dropped || isSound));
  pending.items[row] = next;
}

/** `remedy`: what the user can do. */
function noReplacement(
  { shard, key, reason }: Fault,
  place: 'block' | 'batch',
  remedy: string | Sentence,
): BadSampleError {
  return new BadSampleError(
    { shard, key },
    sentence`${shard}: sample "${key}" cannot be used, and its ${place} has no sample to replace it: ${clauseOf(reason)}. ${remedy}`,
  );
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

/** Counts the rows that were handled. Their contents do not change any more. */
export function countBadRows(pending: PendingBatch, { statistics, onBad }: BadRowOptions): void {
  for (const [row, fault] of pending.faults) {
    if (pending.dropped.has(row)) statistics.countDropped();
    else if (onBad !== 'replace') statistics.countBad(fault);
    else statistics.countBad({ ...fault, replacement: keyOf(pending.blocks[row]!, pending.items[row]!) });
  }
}

/** Returns the error that a custom step threw, for one row or for the whole batch. */
export function stepError(
  pending: PendingBatch,
  { row, reason, stack }: Trouble,
  options: Pick<BadRowOptions, 'shardAt'>,
): CustomStepError {
  const cause = Object.assign(new Error(String(reason)), { stack });
  const at = Math.max(0, row);
  const { shard, key } = whereabouts(pending.blocks[at]!, pending.items[at]!, options);
  const where = row === WHOLE_BATCH ? `the batch that begins with sample "${key}"` : `sample "${key}"`;
  return new CustomStepError({ shard, key }, sentence`${shard}: ${where}: ${reason}`, cause);
}

function whereabouts(
  block: Block,
  item: number,
  { shardAt }: Pick<BadRowOptions, 'shardAt'>,
): { shard: string; key: string } {
  return { shard: shardAt(block.shard[item]!).name, key: keyOf(block, item) };
}
