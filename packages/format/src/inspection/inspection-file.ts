/**
 * The results of an inspection of a shard's samples, `000000.inspect`: a sealed Parquet file like the index, with one
 * row per sample, so that pandas and DuckDB can open it.
 */
import { readFileSync } from 'node:fs';
import { crc32, writeAtomically } from '@shardtool/base';
import { encodeParquet, openParquet } from '../parquet/parquet.js';
import { sealState } from '../parquet/seal.js';
import { labelColumn, takeLabels } from '../shard-index/columns.js';
import { imageColumn } from '../shard-index/image-column.js';
import type { ColumnType, ColumnValue, ShardIndex } from '../shard-index/shard-index.js';

/** A text near the end of every such file. */
export const INSPECTION_MARK = 'shardtool.inspect';
const VERSION = 1;

/** A column of the file, by name. */
export interface InspectionColumn {
  readonly type: ColumnType;
  readonly values: readonly ColumnValue[];
}

export interface InspectionFile {
  /** The identity of the inspected images: {@link contentOf}. */
  readonly content: string;
  /** Sums over the shard's images, defined by the code that made them: plain numbers. */
  readonly totals: readonly number[];
  readonly columns: ReadonlyMap<string, InspectionColumn>;
}

/** Identifies the images of a shard: offsets, lengths and, if known, checksums. */
export function contentOf(index: Pick<ShardIndex, 'samples' | 'fields'>): string {
  const { offset, bytes, crc32: sums } = imageColumn(index);
  const bytesOf = (list: Float64Array | Uint32Array) => new Uint8Array(list.buffer, list.byteOffset, list.byteLength);
  let sum = crc32(bytesOf(bytes), crc32(bytesOf(offset)));
  if (sums !== undefined) sum = crc32(bytesOf(sums), sum);
  return `${index.samples}-${sum}`;
}

/** Writes the file under a temporary name, flushes it and renames it. Throws FileError. */
export async function writeInspection(path: string, { content, totals, columns }: InspectionFile): Promise<void> {
  const rows = [...columns.values()][0]?.values.length ?? 0;
  const description = JSON.stringify({ version: VERSION, content, totals, columns: [...columns.keys()] });
  const stored = [...columns].map(([name, { type, values }]) => labelColumn(name, type, values));
  await writeAtomically(path, encodeParquet(rows, stored, new Map([[INSPECTION_MARK, description]])));
}

/**
 * Reads the file. Returns null if it is damaged, of another version, or about other images than those of `content`:
 * data that can be recomputed never causes an error. `wanted`: the columns to read.
 */
export function readInspection(path: string, content: string, wanted?: ReadonlySet<string>): InspectionFile | null {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch {
    return null;
  }
  if (sealState(bytes) !== 'whole') return null;
  try {
    const file = openParquet(bytes);
    const said = JSON.parse(file.metadata.get(INSPECTION_MARK)!);
    if (said.version !== VERSION || said.content !== content) return null;
    const names = (said.columns as string[]).filter((name) => wanted?.has(name) ?? true);
    const columns = new Map(
      names.map((name): [string, InspectionColumn] => [
        name,
        {
          type: file.typeOf(name) === 'int64' ? 'int' : (file.typeOf(name) as ColumnType),
          values: takeLabels(file, name),
        },
      ]),
    );
    return { content, totals: said.totals, columns };
  } catch {
    return null;
  }
}
