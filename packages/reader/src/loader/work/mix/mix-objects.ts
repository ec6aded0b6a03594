/** The annotations of a mixed batch. */
import { range } from '@shardtool/base';
import { joinObjects, objectsOfPart, type RowObjects } from '../../../annotations/mixed-objects.js';
import type { CheckedAnnotations } from '../../../annotations/options.js';
import { type PastedRow, pasteObjects } from '../../../annotations/paste-objects.js';
import { layOutRecord, readRecord, writeRecord } from '../../../annotations/record.js';
import type { Size } from '../../../codec/codec.js';
import type { DrawnCopyPaste } from '../../../transform/mixes/copy-paste.js';
import { type DrawnSingleMix, otherRow } from '../../../transform/mixes/mix.js';
import { KeyedRandom } from '../../../transform/random.js';

/** The records of the rows of a batch in memory. */
export interface BatchRecords {
  readonly memory: ArrayBufferLike;
  readonly address: number;
  readonly rows: number;
  readonly annotations: CheckedAnnotations;
}

/** Reads the objects of all rows. */
export function objectsOfRows({ memory, address, rows, annotations }: BatchRecords): RowObjects[] {
  const layout = layOutRecord(annotations);
  return range(rows).map((row) => readRecord(memory, address + row * layout.bytes, row, layout, annotations));
}

/** Writes the objects of all rows. */
export function writeObjects(objects: readonly RowObjects[], { memory, address, annotations }: BatchRecords): void {
  const layout = layOutRecord(annotations);
  for (const [row, one] of objects.entries())
    writeRecord(one, layout, annotations.boxFormat, memory, address + row * layout.bytes);
}

/** The objects of all rows after mixup or a mosaic. `isBlank`: the row has no image. */
export function mixObjects(
  mix: Exclude<DrawnSingleMix, { kind: 'paste' }>,
  given: readonly RowObjects[],
  isBlank: (row: number) => boolean,
): RowObjects[] {
  return given.map((own, row) => {
    if (mix.kind === 'labels') {
      const other = otherRow(mix.partner, row, given.length);
      const isUnchanged = mix.rows[row]!.weight === 1 || other === row || isBlank(row) || isBlank(other);
      return isUnchanged ? own : joinObjects([own, given[other]!]);
    }
    const { parts } = mix.rows[row]!;
    if (parts.length === 0) return own;
    return joinObjects(parts.map((part) => objectsOfPart(given[part.row]!, part, mix.rule)));
  });
}

/** The rows after objects of the row before were pasted. A row without an image does not change, nor does a row after it. */
export function pastedRows(
  { keys, rule, objectP }: DrawnCopyPaste,
  given: readonly RowObjects[],
  size: Size,
  isBlank: (row: number) => boolean,
): PastedRow[] {
  return given.map((own, row) => {
    const other = otherRow('previous', row, given.length);
    const key = keys[row]!;
    if (key === null || other === row || isBlank(row) || isBlank(other)) return { objects: own, runs: [], weight: 1 };
    return pasteObjects(own, given[other]!, { size, rule, objectP, random: new KeyedRandom(...key) });
  });
}
