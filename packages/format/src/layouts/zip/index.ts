import { DuplicateKeyError, EntryNameError, sortByCodePoint } from '@shardtool/base';
import { isImageExtension } from '../../image/kinds.js';
import type { ColumnValue } from '../../sample/label-column.js';
import { packedName, whyUnsafe } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import type { OnSkipped, PartedShard, PartReader, SamplePosition, ShardLayout } from '../layout.js';
import { canonicalSplit, folderAt, splitOf } from '../split-name.js';
import type { ZipEntry } from './directory.js';
import { ZipSource } from './zip-source.js';

/**
 * Zip files of images in class folders, zip64 included (PKWARE, APPNOTE.TXT 6.3.10). Files with one stem are a sample,
 * as in a plain folder. The class is the first folder below those that all samples share, and folders named train and
 * val become the label column `split`. Deflated files are inflated when they are read. The directory has the crc32 of
 * every file.
 */
export const zip: ShardLayout = zipOf(undefined);

/** Returns the layout of zip files. If `split` is given, the layout has only the samples of that split. */
function zipOf(split: string | undefined): ShardLayout {
  return {
    name: 'zip',
    extension: '.zip',
    isOpenedByWalk: true,
    expand: (source) => SampleZip.open(source, split),
    samples: (source, onSkipped) => (source as SampleZip).samples(onSkipped),
    partReader: () => partReader(split),
    ofSplit: zipOf,
  };
}

const YIELDED = 256;

function partReader(split: string | undefined): PartReader {
  return async (open): Promise<PartedShard> => {
    const source = await open();
    const opened = await SampleZip.open(source, split).finally(() => source.close());
    const part = {
      firstSample: 0,
      samples: opened.keys.length,
      bytes: opened.source.size,
      open: async () => new ZipSource(await open(), opened.source.entries),
      positions: () => opened.samples(),
      labels: () => opened.samples(),
    };
    return { classes: opened.classes, splits: opened.splits, parts: [part] };
  };
}

/** A zip whose files are grouped into samples. */
class SampleZip implements Source {
  readonly location: string;
  readonly size: number;
  readonly source: ZipSource;
  readonly keys: readonly string[];
  readonly classes: readonly string[];
  /** The splits of all samples in the file. */
  readonly splits: readonly string[];
  /** By sample: the number of its first file; at the end the number of files. */
  readonly #first: readonly number[];
  readonly #fields: readonly string[];
  readonly #skipped: readonly ZipEntry[];
  readonly #depth: number;

  private constructor(source: Source, all: Grouped, split: string | undefined) {
    const { keys } = all;
    // The classes and their numbers are those of all samples, so that splits agree.
    this.#depth = classDepth(keys);
    const folders = keys.map((key) => splitFolder(key, this.#depth - 1));
    this.splits = [...new Set(folders.flatMap((folder) => (folder === null ? [] : splitNameOf(folder))))].sort();
    const taken = split === undefined ? all : takeRows(all, (row) => isOfSplit(folders[row]!, split));
    this.source = new ZipSource(source, taken.entries);
    this.location = source.location;
    this.size = this.source.size;
    this.keys = taken.keys;
    this.#first = taken.first;
    this.#fields = taken.fields;
    this.#skipped = taken.skipped;
    const names = keys.map((key) => folderAt(key, this.#depth)).filter((name) => name !== null);
    this.classes = sortByCodePoint([...new Set(names)]);
  }

  static async open(source: Source, split?: string): Promise<SampleZip> {
    const { entries } = await ZipSource.open(source, (all) => all);
    return new SampleZip(source, group(entries, source.location), split);
  }

  async *samples(onSkipped?: OnSkipped): AsyncGenerator<readonly SamplePosition[]> {
    for (const { name, offset } of this.#skipped) onSkipped?.(name, offset);
    const numbers = new Map(this.classes.map((name, number) => [name, number]));
    const { entries, starts } = this.source;
    const splitDepth = this.#depth - 1;
    const hasSplits = this.splits.length > 0;
    for (let sample = 0; sample < this.keys.length; ) {
      const found: SamplePosition[] = [];
      for (const end = Math.min(sample + YIELDED, this.keys.length); sample < end; sample++) {
        const key = this.keys[sample]!;
        const [first, next] = [this.#first[sample]!, this.#first[sample + 1]!];
        const fields = entries.slice(first, next).map(({ bytes, crc32 }, i) => {
          return { name: this.#fields[first + i]!, offset: starts[first + i]!, bytes, crc32 };
        });
        const folder = folderAt(key, this.#depth);
        const labels = new Map<string, ColumnValue>(hasSplits ? [['split', splitFolder(key, splitDepth)]] : []);
        const span = { offset: starts[first]!, bytes: starts[next]! - starts[first]! };
        found.push({ key, ...span, fields, cls: folder === null ? -1 : numbers.get(folder)!, labels });
      }
      yield found;
    }
  }

  readAt(offset: number, target: Uint8Array): Promise<number> {
    return this.source.readAt(offset, target);
  }

  close(): Promise<void> {
    return this.source.close();
  }
}

/** Files in the order of samples, each sample's in the order of their fields. */
interface Grouped {
  readonly keys: readonly string[];
  readonly first: readonly number[];
  readonly entries: readonly ZipEntry[];
  readonly fields: readonly string[];
  readonly skipped: readonly ZipEntry[];
}

/** Throws {@link EntryNameError} for a name that leads out of its folder, {@link DuplicateKeyError} for two files of one name. */
function group(all: readonly ZipEntry[], shard: string): Grouped {
  const samples = new Map<string, Map<string, ZipEntry>>();
  const skipped: ZipEntry[] = [];
  for (const entry of all) {
    const unsafe = whyUnsafe(entry.name);
    if (unsafe !== null) {
      const message = `${shard}: the file ${entry.name} ${unsafe}; create the zip again without it.`;
      throw new EntryNameError({ shard, path: entry.name, offset: entry.offset }, message);
    }
    const name = HIDDEN.test(entry.name) ? null : packedName(entry.name);
    if (name === null) {
      skipped.push(entry);
      continue;
    }
    const fields = samples.get(name.key) ?? new Map<string, ZipEntry>();
    samples.set(name.key, fields);
    if (fields.has(name.field)) {
      const message = `${shard}: ${fields.get(name.field)!.name} and ${entry.name} would both be the field "${name.field}" of the sample "${name.key}"; rename one of them.`;
      throw new DuplicateKeyError(
        { shard, key: name.key, offset: entry.offset, otherOffset: fields.get(name.field)!.offset },
        message,
      );
    }
    fields.set(name.field, entry);
  }
  const grouped = { keys: [] as string[], first: [0], entries: [] as ZipEntry[], fields: [] as string[], skipped };
  for (const [key, fields] of samples) {
    if (![...fields.keys()].some((field) => isImageExtension(field) || field === 'npy')) {
      skipped.push(...fields.values());
      continue;
    }
    grouped.keys.push(key);
    for (const [field, entry] of [...fields].sort(([a], [b]) => (a < b ? -1 : 1))) {
      grouped.entries.push(entry);
      grouped.fields.push(field);
    }
    grouped.first.push(grouped.entries.length);
  }
  return grouped;
}

/** Files that macOS adds, and names that begin with a dot. */
const HIDDEN = /^__MACOSX\/|(^|\/)\./;

/** How many folders are above that of the class: those that all samples share, and those of splits. */
function classDepth(keys: readonly string[]): number {
  for (let depth = 0; ; depth++) {
    const here = new Set(keys.map((key) => folderAt(key, depth)));
    const isDeeper = keys.length > 0 && keys.every((key) => folderAt(key, depth + 1) !== null);
    const areSplits = [...here].every((name) => name !== null && splitOf(`${name}/`) !== undefined);
    if (!isDeeper || !(here.size === 1 || areSplits)) return depth;
  }
}

/** The samples of some rows. */
function takeRows({ keys, first, entries, fields, skipped }: Grouped, isTaken: (row: number) => boolean): Grouped {
  const taken = { keys: [] as string[], first: [0], entries: [] as ZipEntry[], fields: [] as string[], skipped };
  for (const [row, key] of keys.entries()) {
    if (!isTaken(row)) continue;
    const [from, to] = [first[row]!, first[row + 1]!];
    taken.keys.push(key);
    taken.entries.push(...entries.slice(from, to));
    taken.fields.push(...fields.slice(from, to));
    taken.first.push(taken.entries.length);
  }
  return taken;
}

function splitNameOf(folder: string): string {
  return splitOf(`${folder}/`)!;
}

function isOfSplit(folder: string | null, split: string): boolean {
  return folder !== null && (folder === split || splitNameOf(folder) === canonicalSplit(split));
}

/** The name of a folder if it is that of a split. */
function splitFolder(key: string, depth: number): string | null {
  if (depth < 0) return null;
  const name = folderAt(key, depth);
  return name !== null && splitOf(`${name}/`) !== undefined ? name : null;
}
