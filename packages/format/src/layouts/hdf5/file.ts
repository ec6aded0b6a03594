import { DamagedShardError, UnsupportedShardError } from '@shardtool/base';
import { isRemote, localPathOf } from '@shardtool/storage';
import type { Source } from '../../source.js';
import { type HdfRequest, type HdfValues, hdfThread, type ListedDataset } from './thread.js';

/** One dataset of a file: an array of `shape`. Paths have '/' between groups, and no leading slash: `train/images`. */
export interface HdfDataset extends Pick<ListedDataset, 'path' | 'shape' | 'kind'> {
  /**
   * Throws {@link DamagedShardError} if the file is too short for it, and {@link UnsupportedShardError} for filters
   * that are not supported.
   */
  check(): void;
  /** Reads the values of `count` rows from `first` on. Throws {@link DamagedShardError}, and FileChangedError if the file was replaced. */
  read(first: number, count: number): Promise<HdfValues>;
}

export interface HdfFile {
  readonly datasets: readonly HdfDataset[];
  close(): void;
}

/**
 * Opens a file. Its datasets are read on demand. Throws {@link UnsupportedShardError} if h5wasm is not installed or the
 * file is remote, and {@link DamagedShardError}. `source` identifies the file, and stays open.
 */
export async function openHdf5({ location: shard }: Source): Promise<HdfFile> {
  const location = localPathOf(shard);
  if (isRemote(shard) || location === null) {
    const message = `${shard}: HDF5 can be read only from a local disk; fetch the file first.`;
    throw new UnsupportedShardError({ shard }, message);
  }
  hdfThread.use();
  try {
    const { datasets, version } = await ask({ location }, 'listed');
    return {
      datasets: datasets.map((one) => datasetOf(shard, location, version, one)),
      close: () => hdfThread.leave(),
    };
  } catch (error) {
    hdfThread.leave();
    throw error;
  }
}

function datasetOf(
  shard: string,
  location: string,
  version: string,
  { path, shape, kind, fault }: ListedDataset,
): HdfDataset {
  return {
    path,
    shape,
    kind,
    check() {
      if (fault === null) return;
      const what = `${shard}: its dataset "${path}" ${fault.what}`;
      if (fault.isDamage) throw new DamagedShardError({ shard }, `${what}; it is damaged: fetch or write it again.`);
      throw new UnsupportedShardError(
        { shard },
        `${what}, which shardtool does not read; write it again with gzip or without compression (h5repack -f GZIP=4).`,
      );
    },
    read: async (first, count) => (await ask({ location, rows: { version, path, first, count } }, 'read')).values,
  };
}

async function ask<Kind extends 'listed' | 'read'>(request: HdfRequest, kind: Kind) {
  const answer = await hdfThread.ask(request);
  if (answer.kind === kind) return answer as Extract<typeof answer, { kind: Kind }>;
  throw new Error(`The HDF5 thread answered ${answer.kind} instead of ${kind}.`);
}
