import { DamagedShardError, UnsupportedShardError } from '@shardtool/base';
import { isRemote, localPathOf } from '@shardtool/storage';
import type { Source } from '../../source.js';
import { type HdfRequest, type HdfValues, hdfThread, type ListedDataset } from './thread.js';

/** One dataset of a file: an array of `shape`. Paths have '/' between groups, and none in front: `train/images`. */
export interface HdfDataset extends Pick<ListedDataset, 'path' | 'shape' | 'kind'> {
  /** Throws {@link DamagedShardError} where the file is too short for it, and {@link UnsupportedShardError} for filters that are not read. */
  check(): void;
  /** Values of `count` rows from `first` on. Throws {@link DamagedShardError}, and FileChangedError if the file was replaced. */
  read(first: number, count: number): Promise<HdfValues>;
}

export interface HdfFile {
  readonly datasets: readonly HdfDataset[];
  close(): void;
}

/**
 * Opens a file, of which is read what is asked for. Throws {@link UnsupportedShardError} where h5wasm is not installed or the
 * file is far, {@link DamagedShardError}. `source` says which file it is, and stays open.
 */
export async function openHdf5({ location: shard }: Source): Promise<HdfFile> {
  const location = localPathOf(shard);
  if (isRemote(shard) || location === null) {
    const message = `${shard}: HDF5 is read from a disk of this machine alone; fetch the file first.`;
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
    ...{ path, shape, kind },
    check() {
      if (fault === null) return;
      const what = `${shard}: its dataset "${path}" ${fault.what}`;
      if (fault.isDamage) throw new DamagedShardError({ shard }, `${what}; it is damaged: fetch or write it again.`);
      throw new UnsupportedShardError(
        { shard },
        `${what}, which is not read; write it anew with gzip or without (h5repack -f GZIP=4).`,
      );
    },
    read: async (first, count) => (await ask({ location, rows: { version, path, first, count } }, 'read')).values,
  };
}

async function ask<Kind extends 'listed' | 'read'>(request: HdfRequest, kind: Kind) {
  const answer = await hdfThread.ask(request);
  if (answer.kind === kind) return answer as Extract<typeof answer, { kind: Kind }>;
  throw new Error(`The HDF5 thread answered ${answer.kind} and not ${kind}.`);
}
