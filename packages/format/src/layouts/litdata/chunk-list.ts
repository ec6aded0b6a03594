import { z } from 'zod';
import { labelValue } from '../columns/column-names.js';
import type { ColumnRole, ValueColumn } from '../columns/value-columns.js';

/** The content of `index.json` of a LitData dataset (litdata, streaming/writer.py). */
const LIST = z.object({
  chunks: z.array(z.object({ filename: z.string(), chunk_bytes: z.int(), chunk_size: z.int() })),
  config: z.object({
    data_format: z.array(z.string()),
    data_spec: z.string().nullish(),
    compression: z.string().nullish(),
    compression_level: z.union([z.string(), z.int()]).nullish(),
    encryption: z.unknown(),
    item_loader: z.string().nullish(),
  }),
});

export type ChunkList = z.infer<typeof LIST>;

/** Throws if the text is not such a list. */
export function parseChunkList(text: string): ChunkList {
  return LIST.parse(JSON.parse(text));
}

/** Names of the chunks, in order. */
export function listedChunks(text: string): readonly string[] {
  return parseChunkList(text).chunks.map(({ filename }) => filename);
}

/** The structure of its samples: a tree of dicts, lists and tuples, as JSON text inside JSON (litdata, utilities/_pytree.py). */
interface TreeSpec {
  readonly type: string | null;
  readonly context: string | null;
  readonly children_spec: readonly TreeSpec[];
}

const TREE: z.ZodType<TreeSpec> = z.lazy(() =>
  z.object({ type: z.string().nullable(), context: z.string().nullable(), children_spec: z.array(TREE) }),
);
const NAMES = z.array(z.union([z.string(), z.number()]));
/** Maximum depth of a tree. */
const DEEPEST = 32;

/** The columns in the order of their values, and the class column if its name does not identify it. */
export interface ChunkColumns {
  readonly columns: readonly ValueColumn[];
  readonly cls?: string;
}

/** `refuse` builds the error for a column whose values cannot be read. Throws if the tree does not have that many values. */
export function columnsOf(
  { data_format, data_spec }: ChunkList['config'],
  refuse: (column: string, serializer: string) => Error,
): ChunkColumns {
  const tree =
    data_spec == null ? null : TREE.parse(z.tuple([z.literal(1), z.unknown()]).parse(JSON.parse(data_spec))[1]);
  const names = tree === null ? data_format.map((_, i) => placeName(i)) : leavesOf(tree, '', 0);
  if (names.length !== data_format.length || new Set(names).size !== names.length)
    throw new RangeError('its names do not match its values');
  const columns = data_format.map((serializer, i) => {
    const name = names[i]!;
    const role = roleOf(serializer);
    if (role === null) throw refuse(name, serializer);
    return { name, role };
  });
  const integers = columns.filter((_, i) => data_format[i] === 'int');
  // In a list or a tuple values have no names: its one integer is the class.
  const isNamed = /[dD]ict$/.test(tree?.type ?? '');
  return !isNamed && integers.length === 1 ? { columns, cls: integers[0]!.name } : { columns };
}

/** The names of the values of a tree: keys of dicts, numbers in lists. */
function leavesOf({ type, context, children_spec }: TreeSpec, name: string, depth: number): string[] {
  if (depth > DEEPEST) throw new RangeError('it is too deep');
  if (type === null) return [name === '' ? placeName(0) : name];
  const keys = /[dD]ict$/.test(type) ? NAMES.parse(JSON.parse(context ?? '')) : children_spec.map((_, i) => i);
  if (keys.length !== children_spec.length)
    throw new RangeError('one of its dicts has keys that do not match its values');
  return children_spec.flatMap((child, i) => {
    const key = typeof keys[i] === 'number' && name === '' ? placeName(keys[i]) : String(keys[i]);
    return leavesOf(child, name === '' ? key : `${name}/${key}`, depth + 1);
  });
}

function placeName(place: number): string {
  return `value_${place}`;
}

const exactly = (bytes: DataView, length: number) => {
  if (bytes.byteLength !== length) throw new RangeError('another length');
  return bytes;
};

/** Serializers by name (litdata, streaming/serializers.py). Numbers are little-endian. */
const ROLES: Readonly<Record<string, ColumnRole>> = {
  jpeg: { kind: 'bytes', extension: 'bin' },
  bytes: { kind: 'bytes', extension: 'bin' },
  image: { kind: 'bytes', extension: 'bin' },
  file: { kind: 'bytes', extension: 'bin' },
  tiff: { kind: 'bytes', extension: 'bin' },
  tifffile: { kind: 'bytes', extension: 'bin' },
  str: { kind: 'bytes', extension: 'txt' },
  text: { kind: 'bytes', extension: 'txt' },
  pdf: { kind: 'bytes', extension: 'pdf' },
  int: { kind: 'value', value: (bytes) => labelValue(exactly(bytes, 8).getBigInt64(0, true)) },
  float: { kind: 'value', value: (bytes) => labelValue(exactly(bytes, 8).getFloat64(0, true)) },
  bool: { kind: 'value', value: (bytes) => exactly(bytes, 1).getUint8(0) !== 0 },
};

/** Returns the role of a column with this serializer; null if it cannot be read. The extension of the original file may follow after ":": `image:png`. */
function roleOf(serializer: string): ColumnRole | null {
  const [name] = serializer.split(':');
  return Object.hasOwn(ROLES, name!) ? ROLES[name!]! : null;
}
