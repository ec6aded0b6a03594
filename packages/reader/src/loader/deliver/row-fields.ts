import { changedSincePacked, crc32 } from '@shardtool/base';
import { type FieldColumns, fieldPayload } from '@shardtool/format';
import { notAValue } from '../../dataset/field-bytes.js';
import { type FieldValue, fieldValue } from '../../dataset/field-values.js';
import { locate, placeOf } from '../read/block.js';
import type { Engine } from '../work/engine.js';
import { type LabelSource, labelsOfRow } from './label-values.js';
import type { PendingBatch } from './pending-batch.js';
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
  const { index, indexRow, stretches } = locate(block, item);
  const choose = captionSampling?.of({
    source: pending.sources[row]!,
    pass: block.pass,
    number: pending.numbers[row]!,
    occurrence: block.occurrence[item]!,
  });
  const chosen = (value: FieldValue | null) => (choose === undefined ? value : choose(value));
  for (const name in pending.fields) {
    const column = index.fields.get(name);
    const offset = column?.offset[indexRow] ?? -1;
    if (column === undefined || offset < 0) {
      pending.fields[name]![row] = chosen(index.columns.get(name)?.[indexRow] ?? null);
      continue;
    }
    const stored = engine.encoded(placeOf(block, stretches, offset), column.bytes[indexRow]!);
    const result = read(name, stored, column, indexRow, pending.checksum);
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
  { msgpack, crc32: expected }: FieldColumns,
  indexRow: number,
  checksum: boolean,
): { readonly value: FieldValue } | { readonly fault: string } {
  let payload: Uint8Array;
  try {
    payload = fieldPayload(stored, msgpack?.[indexRow] === 1);
  } catch (cause) {
    return { fault: notAValue(cause) };
  }
  if (checksum && expected !== undefined) {
    const actual = crc32(payload);
    if (actual !== expected[indexRow]) return { fault: changedSincePacked(actual, expected[indexRow]!) };
  }
  try {
    return { value: fieldValue(name, payload) };
  } catch (error) {
    return { fault: `is not what its name says (${(error as Error).message})` };
  }
}
