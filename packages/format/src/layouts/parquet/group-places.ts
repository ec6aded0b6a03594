import { UnsupportedShardError } from '@shardtool/base';
import { readAhead } from '@shardtool/storage';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { fieldOfColumn } from '../columns/column-names.js';
import type { Columns } from './columns.js';
import { type Chunk, chunkOf, damaged, type Footer } from './footer.js';
import { findListPlaces } from './list-places.js';
import type { PageCache } from './pages/pages.js';
import { type ColumnPlaces, findPlaces } from './places.js';

/** How much of a remote file is fetched at once while positions are searched. */
const FETCHED_BYTES = 2 << 20;

/** Where everything of a row group is, in a view with the values of each row in sequence, and the rows in sequence. */
export interface GroupPlaces {
  /** The offset of each row in the view, and the end of the last one. */
  readonly starts: Float64Array;
  readonly columns: readonly ColumnPlaces[];
}

/** Memory for the position of one value, and of one row. */
const PLACE_BYTES = 13;
const ROW_BYTES = 8;

/** Memory for the positions of that many rows and values. */
export function bytesOfPlaces(rows: number, values: number): number {
  return rows * ROW_BYTES + values * PLACE_BYTES;
}

/** A file's columns, and its location, for messages. */
export interface FileColumns {
  readonly location: string;
  readonly columns: Columns;
}

/**
 * Finds everything of row group `group`. Reads the headers of its pages, and the pages that contain lengths, which stay
 * in `cache`. Throws DamagedShardError and UnsupportedShardError.
 */
export async function findGroupPlaces(
  source: Source,
  { location, columns: { bytes: wanted, ours, image } }: FileColumns,
  footer: Footer,
  group: number,
  cache: PageCache,
): Promise<GroupPlaces> {
  const { num_rows, columns: chunks } = footer.row_groups[group]!;
  const rows = Number(num_rows);
  const columns: ColumnPlaces[] = [];
  const named: { readonly name: string; readonly fields: Iterable<string> }[] = [];
  for (const column of wanted) {
    const chunk = chunkOf(chunks[column.leaf]!);
    const part = frontToBack(source, chunk);
    const reader = { source: part, window: new FileWindow(part), cache };
    try {
      const own = ours?.of.get(column.name)?.of;
      const nameOf = (first: Uint8Array) => own ?? fieldOfColumn(column.name, first, column.name === image);
      const { itemLevel, name } = column;
      const nameOfItem = (item: number, first: Uint8Array) =>
        fieldOfColumn(`${name}.${item}`, first, name === image && item === 0);
      const found =
        itemLevel === undefined
          ? [await findPlaces(reader, column, nameOf, chunk, rows)]
          : await findListPlaces(reader, { ...column, itemLevel }, nameOfItem, chunk, rows);
      columns.push(...found);
      named.push(...found.map(({ fields }) => ({ name, fields })));
    } finally {
      if (part !== source) await part.close();
    }
  }
  checkFields(location, named);
  const starts = new Float64Array(rows + 1);
  for (let row = 0; row < rows; row++) {
    let bytes = 0;
    for (const column of columns) bytes += column.bytes[row]!;
    starts[row + 1] = starts[row]! + bytes;
  }
  const known = ours?.groupBytes[group];
  const isWhole = columns.every(({ lost }) => lost.size === 0);
  if (known !== undefined && isWhole && known !== starts[rows])
    throw damaged(location, 0, `row group ${group} has ${starts[rows]} bytes of fields, but its footer says ${known}`);
  return { starts, columns };
}

function checkFields(
  location: string,
  columns: readonly { readonly name: string; readonly fields: Iterable<string> }[],
): void {
  const owner = new Map<string, string>();
  for (const { name, fields } of columns) {
    for (const field of fields) {
      const other = owner.get(field);
      if (other !== undefined && other !== name) {
        const message = `${location}: its columns "${other}" and "${name}" would both be the field "${field}"; rename one of them.`;
        throw new UnsupportedShardError({ shard: location }, message);
      }
      owner.set(field, name);
    }
  }
}

/** A chunk of a remote file, fetched once from front to back and not beyond its end; a local file is returned unchanged. */
function frontToBack(source: Source, { offset, bytes }: Chunk): Source {
  if (source.readNow !== undefined) return source;
  const { location } = source;
  const chunk = readAhead(
    { location, size: bytes, readAt: (at, target) => source.readAt(offset + at, target), close: async () => {} },
    { chunkBytes: FETCHED_BYTES, ahead: 2, kept: 4 },
  );
  return { ...chunk, size: offset + bytes, readAt: (at, target) => chunk.readAt(at - offset, target) };
}
