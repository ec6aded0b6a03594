/** The thread in which the HDF5 library reads. */
import { type BigIntStats, closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import {
  DamagedShardError,
  FileChangedError,
  FileError,
  LruCache,
  reasonOf,
  recordError,
  ShardtoolError,
  UnsupportedShardError,
} from '@shardtool/base';
import type { Dataset, File, Group } from 'h5wasm';
import { type Hdf5Library, loadHdf5, putFile } from './library.js';
import type { HdfAnswer, HdfKind, HdfRequest, HdfThreadData, HdfValues, ListedDataset } from './thread.js';

/** H5T_class_t of the HDF5 library (H5Tpublic.h). */
const INTEGER = 0;
const FLOAT = 1;
const STRING = 3;
const VARIABLE = 9;

/** How many levels of groups are searched. */
const DEEPEST = 6;
const MOST_DATASETS = 10_000;
/** How many files stay open, with the library's data for each. */
const MOST_OPEN = 8;
/** The highest expansion by deflate, in bytes per byte; other filters expand less. */
const MOST_OF_A_BYTE = 1032;
/** Filters that h5wasm supports (H5Zpublic.h): deflate, shuffle, fletcher32, szip, nbit, scaleoffset. */
const FILTERS = new Set([1, 2, 3, 4, 5, 6]);

interface OpenFile {
  readonly file: File;
  readonly size: number;
  readonly version: string;
  close(): void;
}

const { reads } = workerData as HdfThreadData;
/** Open files by location and version. */
const opened = new LruCache<string, OpenFile>(MOST_OPEN, (file) => file.close());
let library: Hdf5Library;

parentPort!.on('message', (request: HdfRequest | null) => {
  if (request === null) process.exit();
  void answerTo(request).then((answer) => parentPort!.postMessage(answer));
});

async function answerTo({ location, rows }: HdfRequest): Promise<HdfAnswer> {
  try {
    library ??= await loadHdf5(location);
    if (rows === undefined) {
      const { file, size, version } = fileAt(location, null);
      return { kind: 'listed', version, datasets: listed(location, size, file) };
    }
    const { version, path, first, count } = rows;
    const { file } = fileAt(location, version);
    const values = guarded(location, `its dataset "${path}"`, () => {
      const read = (file.get(path) as Dataset).slice([[first, first + count]]);
      if (read === null || typeof read !== 'object') throw new Error('it has no values');
      return read as HdfValues;
    });
    return { kind: 'read', values };
  } catch (error) {
    return { kind: 'failed', error: recordError(error) };
  }
}

/**
 * The file with this version; null: the current file. An open file stays the same when it is replaced, so its rows
 * match its list. Throws {@link FileChangedError} if another file is there by now.
 */
function fileAt(shard: string, version: string | null): OpenFile {
  const wanted = version ?? trying(shard, () => versionOf(statSync(shard, { bigint: true })));
  const known = opened.get(`${wanted} ${shard}`);
  const file = known ?? openFile(shard);
  if (known === undefined) opened.set(`${file.version} ${shard}`, file);
  if (version === null || file.version === version) return file;
  const message = `${shard} was replaced while it was read. Open the dataset again, or restore the file.`;
  throw new FileChangedError({ path: shard }, message);
}

function trying<T>(shard: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    throw new FileError({ path: shard }, `${shard} cannot be opened: ${reasonOf(cause)}.`, { cause });
  }
}

/** Identifies a version of a file. */
function versionOf({ dev, ino, size, mtimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs].join('-');
}

function openFile(shard: string): OpenFile {
  const fd = trying(shard, () => openSync(shard, 'r'));
  const found = fstatSync(fd, { bigint: true });
  const size = Number(found.size);
  const place = putFile(library, size, (position, target) => {
    Atomics.add(reads, 0, 1);
    return readSync(fd, target, 0, target.length, position);
  });
  const removed = () => {
    place.remove();
    closeSync(fd);
  };
  try {
    const file = guarded(shard, 'this HDF5 file', () => {
      const found = new library.File(place.path, 'r');
      // A file that could not be opened has an invalid identifier, and no error.
      if (found.file_id > 0n) return found;
      throw new Error('the library cannot open it');
    });
    return {
      file,
      size,
      version: versionOf(found),
      close: () => {
        file.close();
        removed();
      },
    };
  } catch (error) {
    removed();
    throw error;
  }
}

function listed(shard: string, size: number, file: File): readonly ListedDataset[] {
  return guarded(shard, 'its list of datasets', () => {
    const datasets = [...datasetsIn(file)].map(([path, dataset]) => describe(size, path, dataset));
    if (datasets.length <= MOST_DATASETS) return datasets;
    const message = `${shard}: it has more than ${MOST_DATASETS} datasets, as in files with one dataset per image, which shardtool does not read. Write the images into one dataset.`;
    throw new UnsupportedShardError({ shard }, message);
  });
}

/** The datasets below a group by their paths, at most one more than the limit. Links to other files are not followed. */
function* datasetsIn(root: Group): Generator<readonly [path: string, dataset: Dataset]> {
  const open = [{ group: root, folder: '', depth: 0 }];
  let found = 0;
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { group, folder, depth } = next;
    for (const name of group.keys()) {
      const one = group.get(name);
      const path = `${folder}${name}`;
      if (one instanceof library.Group && depth < DEEPEST && open.length < MOST_DATASETS)
        open.push({ group: one, folder: `${path}/`, depth: depth + 1 });
      else if (one instanceof library.Dataset) {
        yield [path, one];
        if (found++ === MOST_DATASETS) return;
      }
    }
  }
}

function describe(size: number, path: string, dataset: Dataset): ListedDataset {
  const { metadata, filters } = dataset;
  const shape = metadata.shape ?? [];
  const bytes = shape.reduce((product, side) => product * side, metadata.vlen ? 1 : metadata.size);
  const most = size * (filters.length > 0 ? MOST_OF_A_BYTE : 1);
  const unknown = filters.filter(({ id }) => !FILTERS.has(id)).map(({ name, id }) => name || id);
  const fault =
    unknown.length > 0
      ? { what: `is compressed by ${unknown.join(', ')}`, isDamage: false }
      : bytes <= most
        ? null
        : { what: `claims ${bytes} bytes, more than the file can hold`, isDamage: true };
  return { path, shape, kind: kindOf(metadata), fault };
}

function kindOf({ type, size, signed, vlen_type: inner }: Dataset['metadata']): HdfKind {
  if (type === INTEGER) return size === 1 && !signed ? 'byte' : 'integer';
  if (type === FLOAT) return 'float';
  if (type === STRING) return 'text';
  return type === VARIABLE && inner?.type === INTEGER && inner.size === 1 ? 'bytes' : 'other';
}

/** Runs `work`. Any error of the library means that the file is damaged. */
function guarded<T>(shard: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    // The library reports an error with one line per function, the innermost last.
    const reason = [...said.matchAll(/^\s*#\d+: .* in \w+\(\): (.+)$/gm)].at(-1)?.[1] ?? said;
    const message = `${shard}: ${what} cannot be read (${reason}); it is damaged: fetch or write it again.`;
    throw new DamagedShardError({ shard }, message, { cause });
  }
}
