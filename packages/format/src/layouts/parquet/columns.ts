import { UnsupportedShardError } from '@shardtool/base';
import { parquetSchema, type SchemaTree } from 'hyparquet';
import { classColumnOf, imageColumnOf } from '../columns/column-names.js';
import { decodeTable, isField, TABLE_MARK, type TableColumn } from '../columns/table.js';
import type { Footer } from './footer.js';

/** The roles of a file's columns. */
export interface Columns {
  /** Columns of bytes, in the order of the file: images and other fields. */
  readonly bytes: readonly BytesColumn[];
  /** The column of {@link bytes} that is the image of a sample. */
  readonly image: string | undefined;
  /** The column that is the class. */
  readonly cls: string | undefined;
  /** Names of the classes, if the file has them. */
  readonly classes: readonly string[];
  /** If shardtool wrote the file: the role of each top-level column, and the length of each row group's view. */
  readonly ours?: OwnColumns | undefined;
}

export interface OwnColumns {
  readonly of: ReadonlyMap<string, TableColumn>;
  readonly groupBytes: readonly number[];
}

export interface BytesColumn {
  /** The name of the top-level column: `image` for `image.bytes`. */
  readonly name: string;
  /** Its index among the columns of a row group. */
  readonly leaf: number;
  /** How many levels, of it and its parents, may be absent or are lists: its maximum definition level. */
  readonly maxLevel: number;
  /** If it is a list: the definition level from which a row has an item, which may be null. */
  readonly itemLevel?: number;
}

/** The features that Hugging Face datasets stores under the key `huggingface`. */
interface Features {
  readonly [name: string]:
    | { readonly _type?: unknown; readonly names?: unknown; readonly feature?: { readonly _type?: unknown } }
    | undefined;
}

/**
 * Determines which columns hold bytes, which of them is the image, and which column is the class: from the metadata of
 * Hugging Face datasets, else from their names. A column of bytes is a binary column, a struct of `bytes` and `path`, or
 * a list of one of them. Throws {@link UnsupportedShardError} for bytes that are nested deeper.
 */
export function columnsOf(footer: Footer, shard: string): Columns {
  const features = featuresOf(footer);
  const ours = ownColumns(footer);
  const bytes: BytesColumn[] = [];
  const values: string[] = [];
  let leaf = 0;
  for (const column of parquetSchema(footer).children) {
    const own = ours?.of.get(column.element.name);
    const found = own === undefined ? bytesIn(column) : isField(own) ? ownBytesIn(column) : undefined;
    const list = found === undefined && own === undefined ? listIn(column) : undefined;
    const place = (value: SchemaTree) => ({
      name: column.element.name,
      leaf: leaf + leavesOf(column).indexOf(value),
      maxLevel: levelOf(column, value),
    });
    if (found !== undefined) bytes.push(place(found));
    else if (list !== undefined) bytes.push({ ...place(list.bytes), itemLevel: levelOf(column, list.repeated) });
    else if (own === undefined && leavesOf(column).some(isBytes)) {
      const message = `${shard}: its column "${column.element.name}" holds bytes in lists of lists or deeper, but a sample has one value per field; write it again without that column.`;
      throw new UnsupportedShardError({ shard }, message);
    } else if (column.children.length === 0) values.push(column.element.name);
    leaf += leavesOf(column).length;
  }
  const ofType = (type: string) => Object.keys(features).filter((name) => features[name]?._type === type);
  const labels = ofType('ClassLabel').filter((name) => values.includes(name));
  const cls = classColumnOf(labels) ?? labels[0] ?? classColumnOf(values);
  const names = bytes.map(({ name }) => name);
  const images = Object.keys(features).filter((name) => hasImages(features[name]) && names.includes(name));
  const classes = cls === undefined ? [] : features[cls]?.names;
  return {
    bytes,
    image: imageColumnOf(images.length > 0 ? images : names),
    cls,
    classes: Array.isArray(classes) ? classes.map(String) : [],
    ours,
  };
}

/** Returns the column itself if it has bytes, else the column `bytes` of its struct. Undefined if there is neither. */
function bytesIn(column: SchemaTree): SchemaTree | undefined {
  return column.element.repetition_type === 'REPEATED' ? undefined : bytesOfItem(column);
}

function bytesOfItem(column: SchemaTree): SchemaTree | undefined {
  if (column.children.length === 0) return isBytes(column) ? column : undefined;
  const bytes = column.children.find(({ element }) => element.name === 'bytes');
  const others = column.children.filter((child) => child !== bytes);
  const isImage = others.every(({ element, children }) => element.name === 'path' && children.length === 0);
  if (!isImage || bytes === undefined || bytes.element.repetition_type === 'REPEATED') return undefined;
  return bytes.children.length === 0 && isBytes(bytes) ? bytes : undefined;
}

/** For a list of bytes, or of structs with bytes: its repeated level, and the column of bytes. Undefined for all else. */
function listIn(column: SchemaTree): { readonly repeated: SchemaTree; readonly bytes: SchemaTree } | undefined {
  const [repeated] = column.children;
  if (column.element.repetition_type === 'REPEATED' || column.children.length !== 1) return undefined;
  if (repeated!.element.repetition_type !== 'REPEATED') return undefined;
  // The repeated level is the item itself in files of some old writers. Apache Parquet format, LogicalTypes.md, "Lists".
  const [only] = repeated!.children;
  const isWrapped = repeated!.children.length === 1 && only!.element.name !== 'bytes';
  const bytes = isWrapped ? bytesIn(only!) : bytesOfItem(repeated!);
  return bytes && { repeated: repeated!, bytes };
}

/** The maximum definition level of `inner`, which is `column` or below it. */
function levelOf(column: SchemaTree, inner: SchemaTree): number {
  const own = column.element.repetition_type === 'REQUIRED' ? 0 : 1;
  if (column === inner) return own;
  return own + levelOf(column.children.find((child) => isWithin(child, inner))!, inner);
}

function isWithin(column: SchemaTree, inner: SchemaTree): boolean {
  return column === inner || column.children.some((child) => isWithin(child, inner));
}

/** Like {@link bytesIn}, for a field in a file that shardtool wrote, where text counts too. */
function ownBytesIn(column: SchemaTree): SchemaTree | undefined {
  const [bytes] = column.children;
  const found = bytes === undefined ? column : bytes;
  return found.element.type === 'BYTE_ARRAY' && found.element.repetition_type !== 'REPEATED' ? found : undefined;
}

/** Null if other software wrote the file, or changed it. */
function ownColumns({ key_value_metadata, row_groups, schema }: Footer): OwnColumns | undefined {
  const text = key_value_metadata?.find(({ key }) => key === TABLE_MARK)?.value;
  const of = decodeTable(text);
  if (of === null) return undefined;
  const { groups } = JSON.parse(text!);
  const names = parquetSchema({ schema } as Footer).children.map(({ element }) => element.name);
  const isWhole = names.length === of.size && names.every((name) => of.has(name));
  const isCounted = Array.isArray(groups) && groups.length === row_groups.length && groups.every(isLength);
  return isWhole && isCounted ? { of, groupBytes: groups } : undefined;
}

function isLength(bytes: unknown): boolean {
  return Number.isSafeInteger(bytes) && (bytes as number) >= 0;
}

/** Whether a column holds bytes that are not marked as text or a number. */
function isBytes({ element: { type, converted_type, logical_type } }: SchemaTree): boolean {
  return type === 'BYTE_ARRAY' && converted_type === undefined && (logical_type === undefined || logical_type === null);
}

/** Whether a feature is an image or a list of images: a list is `{ feature }`, or `[feature]` in old versions. */
function hasImages(feature: Features[string]): boolean {
  const item = Array.isArray(feature) ? feature[0] : (feature?.feature ?? feature);
  return item?._type === 'Image';
}

function leavesOf(column: SchemaTree): SchemaTree[] {
  return column.children.length === 0 ? [column] : column.children.flatMap(leavesOf);
}

function featuresOf({ key_value_metadata }: Footer): Features {
  const text = key_value_metadata?.find(({ key }) => key === 'huggingface')?.value;
  if (text === undefined) return {};
  try {
    const features = JSON.parse(text)?.info?.features;
    return typeof features === 'object' && features !== null ? features : {};
  } catch {
    return {};
  }
}
