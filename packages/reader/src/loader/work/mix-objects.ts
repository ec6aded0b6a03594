/** The annotations of a mixed batch. */
import { range } from '@shardtool/base';
import { joinObjects, objectsOfPart, type RowObjects } from '../../annotations/mixed-objects.js';
import type { CheckedAnnotations } from '../../annotations/options.js';
import { layOutRecord, readRecord, writeRecord } from '../../annotations/record.js';
import { type DrawnMix, otherRow } from '../../transform/mix.js';

/** The records of the rows of a batch in memory. */
export interface BatchRecords {
  readonly memory: ArrayBufferLike;
  readonly address: number;
  readonly rows: number;
  readonly annotations: CheckedAnnotations;
}

/** Writes the objects of all rows as they are after the mix. `isMixed` is false for rows that are not mixed because an image is missing. */
export function mixObjects(
  mix: DrawnMix | null,
  { memory, address, rows, annotations }: BatchRecords,
  isMixed: (row: number, other: number) => boolean,
): void {
  const layout = layOutRecord(annotations);
  const given = range(rows).map((row) => readRecord(memory, address + row * layout.bytes, row, layout, annotations));
  for (const row of range(rows)) {
    const objects = objectsOf(row);
    writeRecord(objects, layout, annotations.boxFormat, memory, address + row * layout.bytes);
  }

  function objectsOf(row: number): RowObjects {
    const own = given[row]!;
    if (mix === null) return own;
    if (mix.kind === 'labels') {
      const other = otherRow(mix.partner, row, rows);
      const isUnchanged = mix.rows[row]!.weight === 1 || other === row || !isMixed(row, other);
      return isUnchanged ? own : joinObjects([own, given[other]!]);
    }
    const { parts } = mix.rows[row]!;
    if (parts.length === 0) return own;
    return joinObjects(parts.map((part) => objectsOfPart(given[part.row]!, part, mix.rule)));
  }
}
