import { changedSincePacked, crc32 } from '@shardtool/base';
import { fieldPayload } from '@shardtool/format';
import { notAValue } from '../../../dataset/fields/field-bytes.js';
import { type FieldValue, fieldValue } from '../../../dataset/fields/field-values.js';
import { locate, partOf } from '../../read/block.js';
import type { Part } from '../../ring/extra-fields.js';
import { UNCHECKED } from '../../ring/job.js';
import type { LabelSource } from '../../setup/labels-option.js';
import type { Engine } from '../../work/engine.js';
import { labelsOfRow } from '../batch/label-values.js';
import type { PendingBatch } from '../pending-batch.js';
import type { TextChoice } from './text-choice.js';

/**
 * Puts the values of a row's fields, and of label columns, into the batch. If the bytes of a field have changed or
 * cannot be read, the sample is a bad one.
 */
export function readFields(
  pending: PendingBatch,
  row: number,
  engine: Pick<Engine, 'encoded'>,
  captionSampling: TextChoice | null,
  labels: LabelSource | null,
): void {
  const block = pending.blocks[row]!;
  const item = pending.items[row]!;
  const located = locate(block, item);
  const { index, indexRow } = located;
  const choose = captionSampling?.of({
    source: pending.sources[row]!,
    pass: block.pass,
    number: pending.numbers[row]!,
    occurrence: block.occurrence[item]!,
  });
  const chosen = (value: FieldValue | null) => (choose === undefined ? value : choose(value));
  for (const name in pending.fields) {
    const column = index.fields.get(name);
    if (column === undefined || column.offset[indexRow]! < 0) {
      pending.fields[name]![row] = chosen(index.columns.get(name)?.[indexRow] ?? null);
      continue;
    }
    const part = partOf(block, located, column, pending.isChecked(row));
    const result = read(name, engine.encoded(part), part);
    if ('fault' in result) {
      pending.bad.push({ row, reason: `its field "${name}" ${result.fault}` });
      return;
    }
    pending.fields[name]![row] = chosen(result.value);
  }
  if (labels === null) return;
  const wrong = labelsOfRow(pending.fields[labels.field]![row] ?? null, labels);
  if (typeof wrong === 'string') pending.bad.push({ row, reason: `its field "${labels.field}" ${wrong}` });
}

/** Returns the value, or the end of an error message about it. */
function read(
  name: string,
  stored: Uint8Array,
  { msgpack, crc32: expected }: Part,
): { readonly value: FieldValue } | { readonly fault: string } {
  let payload: Uint8Array;
  try {
    payload = fieldPayload(stored, msgpack);
  } catch (cause) {
    return { fault: notAValue(cause) };
  }
  if (expected !== UNCHECKED) {
    const actual = crc32(payload);
    if (actual !== expected) return { fault: changedSincePacked(actual, expected) };
  }
  try {
    return { value: fieldValue(name, payload) };
  } catch (error) {
    return { fault: `is not what its name says (${(error as Error).message})` };
  }
}
