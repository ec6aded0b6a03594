import { inLanes, Recent, ShardIndexError } from '@shardtool/base';
import {
  type FoundShard,
  findSidecars,
  type IndexPart,
  identityOf,
  indexOfPositions,
  type LayoutName,
  openSource,
  type PartReader,
  readShardIndex,
  renumberClasses,
  rowsOfIndex,
  type ShardIndex,
  type ShardPart,
  type Source,
  uniteClasses,
} from '@shardtool/format';
import { type Expected, entryAt, isRemote, shownLocation } from '@shardtool/storage';
import type { ShardFile } from '../shards/shard-file.js';
import type { StoredParts } from '../stored-dataset.js';

/** Number of shards that are opened at a time. Each takes one or two requests. */
const OPENED_AT_ONCE = 32;
/** Number of indexes of whole files that stay in memory for their parts. */
const KEPT_INDEXES = 8;
/** Parts of an index that can be read without locating the payloads. */
const LABEL_PARTS: ReadonlySet<IndexPart> = new Set(['key', 'source', 'cls', 'columns', 'columnTypes']);
/** The label column with the split of a sample, if files of several splits are read. */
const SPLIT_COLUMN = 'split';

/**
 * Opens files that are read in parts. Each part is a shard of the dataset. For each file this reads only the number of
 * samples of each part, and one part for the names of its fields. If files have different classes, classes are joined
 * by name. An index next to a file covers the whole file, with columns by their usual names: `usesIndexes` tells
 * whether it can be used. Throws DamagedShardError, UnsupportedShardError, FileError.
 */
export async function partedParts(
  found: readonly FoundShard[],
  layout: LayoutName,
  open: PartReader,
  usesIndexes: boolean,
): Promise<StoredParts> {
  const shards = await inLanes(found, OPENED_AT_ONCE, async (shard) => {
    const file = new SameFile(shard);
    const index = usesIndexes ? findSidecars('index', shard.path, shard.storage) : null;
    const [parted, indexPath] = await Promise.all([open(() => file.open()), index]);
    return { ...parted, indexPath, version: file.version };
  });
  const { classes, numbers } = uniteClasses(shards.map((shard) => shard.classes));
  const hasSplits = new Set(found.map(({ split }) => split)).size > 1;
  const indexes = new Recent<string, ShardIndex>(KEPT_INDEXES, (path) => readShardIndex(path));
  const files = shards.flatMap(({ parts, indexPath, version }, k) => {
    const whole = indexPath === null ? null : () => indexes.get(indexPath);
    return parts.map((part, number) =>
      partFile(found[k]!, part, {
        whole,
        version,
        hasSplits,
        classNumbers: numbers[k]!,
        number: parts.length === 1 ? null : number,
      }),
    );
  });
  const some = files.find(({ samples }) => samples > 0);
  const { fields } = some === undefined ? { fields: new Map() } : await some.loadParts(['fields']);
  const marks = files.map(({ name, samples, bytes }) => ({ file: name, samples, crc32: String(bytes) }));
  const splits = [...new Set(shards.flatMap((shard) => shard.splits ?? []))].sort();
  return {
    location: shownLocation(found[0]!.path),
    ...(splits.length > 0 && { splits }),
    format: layout,
    identity: identityOf(marks),
    identityOfFirst: (count) => identityOf(marks.slice(0, count)),
    classes,
    // Counting them would mean reading a column of each part.
    classSamples: [],
    fields: [...fields.keys()].sort(),
    shards: files,
  };
}

/**
 * Opens a file repeatedly. If the file was replaced in between, it throws, because the metadata that was kept belongs
 * to the first file.
 */
class SameFile {
  readonly #shard: FoundShard;
  #known: Expected | undefined;

  constructor(shard: FoundShard) {
    this.#shard = shard;
  }

  /** Version of the file when it was first opened. */
  get version(): string | undefined {
    return this.#known?.version;
  }

  async open(): Promise<Source> {
    const { path, storage } = this.#shard;
    if (this.#known !== undefined) return openSource(path, this.#known, storage);
    const entry = isRemote(path) ? null : await entryAt(path, storage);
    const source = await openSource(path, entry ?? { first: 'end' }, storage);
    this.#known = entry ?? { size: source.size, version: source.version };
    return source;
  }
}

interface PartContext {
  /** Reads the index next to the file. Null if there is none. */
  readonly whole: (() => Promise<ShardIndex>) | null;
  readonly version: string | undefined;
  /** True if the dataset has files of several splits. */
  readonly hasSplits: boolean;
  /** Class numbers of the file in the dataset, or null if they are unchanged. */
  readonly classNumbers: readonly number[] | null;
  /** Number of the part, or null for the whole file. */
  readonly number: number | null;
}

function partFile(found: FoundShard, part: ShardPart, context: PartContext): ShardFile {
  const { whole, version, hasSplits, classNumbers, number } = context;
  const { path, storage, split } = found;
  const name = number === null ? found.name : `${found.name}[${number}]`;
  const { samples } = part;
  const asSeen = (read: ShardIndex): ShardIndex => {
    const index = { ...read, cls: renumberClasses(read.cls, classNumbers) };
    if (!hasSplits || index.columns.has(SPLIT_COLUMN)) return index;
    const ofSplit = new Array<string | null>(samples).fill(split ?? null);
    return { ...index, columns: new Map([...index.columns, [SPLIT_COLUMN, ofSplit]]) };
  };
  const loadIndex = async () => {
    const kept = await whole?.();
    return asSeen(kept === undefined ? await indexOfPositions(part.positions()) : rowsOf(kept, part, found));
  };
  return {
    name,
    path,
    storage,
    bytes: part.bytes,
    samples,
    version,
    open: () => part.open(),
    ...(whole === null && { hasLabelsApart: true as const }),
    loadIndex,
    loadParts: async (parts) => {
      const isOfLabels = whole === null && parts.every((one) => LABEL_PARTS.has(one));
      return isOfLabels ? asSeen(await indexOfPositions(part.labels())) : loadIndex();
    },
    findCropIndex: async () => null,
  };
}

/** Returns the rows of a part from the index of its file, with offsets within the part. */
function rowsOf(index: ShardIndex, { firstSample, samples }: ShardPart, { path }: FoundShard): ShardIndex {
  const end = firstSample + samples;
  if (index.samples < end) {
    const message = `The index of ${path} has ${index.samples} samples, and the file has more: it belongs to another file. Make it again with "shardtool index --overwrite".`;
    throw new ShardIndexError({ path }, message);
  }
  const base = samples === 0 ? 0 : index.offset[firstSample]!;
  const moved = (offset: Float64Array) => offset.map((at) => (at < 0 ? at : at - base));
  const rows = rowsOfIndex(index, firstSample, end);
  return {
    ...rows,
    offset: moved(rows.offset),
    fields: new Map(Array.from(rows.fields, ([name, field]) => [name, { ...field, offset: moved(field.offset) }])),
  };
}
