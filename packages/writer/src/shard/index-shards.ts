import { closeSync, existsSync, fstatSync, openSync } from 'node:fs';
import path from 'node:path';
import {
  buildShardIndex,
  FileError,
  findShards,
  indexPathOf,
  keptIndexPath,
  type LayoutName,
  layoutOf,
  openSource,
  readShardIndex,
  type ShardIndex,
  UnsupportedShardError,
  type WidsShard,
  writeShardIndex,
} from '@shardtool/format';
import { noteOtherIndexes } from '../output/pack-note.js';
import { checkOtherIndexes, md5Of, type OtherIndex, writeDaliIndex, writeWidsIndex } from './other-indexes.js';

export interface IndexReport {
  /** Shards whose index was made. */
  readonly shards: number;
  /** Shards whose index was there already. */
  readonly kept: number;
  /** Samples of the indexes that were made. */
  readonly samples: number;
  /** Files in their shards that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
}

/**
 * Walks shards and writes the index of each, `NAME.parquet`, beside it: for WebDataset tars of other software, which then
 * open at once, and where the index of a packed shard was lost. `locations` are tars, or folders of them. An index that is
 * there stays, unless its tar is newer or `overwrite` says otherwise; one that `pack` wrote is only made anew where it is
 * missing, since it has what no walk can find out. Those that `index` names are written for other loaders too, each time: `NAME.idx`
 * beside each tar, and one index for wids in each folder. Throws what is wrong with a shard,
 * {@link UnsupportedShardError} for LMDB, which does not keep the samples in their order, and {@link OptionError} where
 * an index is asked for that the layout does not have.
 */
export async function indexShards(
  locations: readonly string[],
  options: { readonly overwrite?: boolean; readonly index?: readonly OtherIndex[] } = {},
): Promise<IndexReport> {
  const { overwrite = false, index: otherIndexes = [] } = options;
  const report = { shards: 0, kept: 0, samples: 0, skippedEntries: 0 };
  const forWids = new Map<string, WidsShard[]>();
  for (const location of locations) {
    for (const shard of await shardsAt(location, overwrite)) {
      checkOtherIndexes(shard.format, otherIndexes);
      if (shard.isKept) {
        report.kept++;
      } else {
        const { index, skipped } = await buildIndex(shard);
        await writeShardIndex(indexPathOf(shard.path), index);
        report.shards++;
        report.samples += index.samples;
        report.skippedEntries += skipped;
      }
      if (otherIndexes.length === 0) continue;
      const folder = path.dirname(shard.path);
      if (!forWids.has(folder)) {
        await noteOtherIndexes(folder, otherIndexes);
        forWids.set(folder, []);
      }
      forWids.get(folder)!.push(await indexForOthers(shard.path, otherIndexes));
    }
  }
  if (otherIndexes.includes('wids')) for (const [folder, records] of forWids) await writeWidsIndex(folder, records);
  return report;
}

/** Writes the index for DALI where it is wanted, and gives what the one for wids says of the tar. */
async function indexForOthers(tar: string, otherIndexes: readonly OtherIndex[]): Promise<WidsShard> {
  const index = await readShardIndex(indexPathOf(tar));
  if (otherIndexes.includes('dali')) await writeDaliIndex(tar, index);
  const fd = openSync(tar, 'r');
  try {
    return { file: path.basename(tar), samples: index.samples, bytes: fstatSync(fd).size, md5: md5Of(fd) };
  } finally {
    closeSync(fd);
  }
}

interface ShardToIndex {
  readonly path: string;
  readonly format: LayoutName;
  /** Its index is there and stays. */
  readonly isKept: boolean;
}

async function shardsAt(location: string, overwrite: boolean): Promise<ShardToIndex[]> {
  const found = await findShards(location);
  if (found.kind === 'packed') {
    return found.manifest.shards.map(({ file }) => {
      const shard = path.join(location, file);
      return { path: shard, format: found.manifest.format, isKept: existsSync(indexPathOf(shard)) };
    });
  }
  return Promise.all(
    found.tars.map(async (tar) => ({
      path: tar,
      format: formatOf(tar),
      isKept: !overwrite && (await keptIndexPath(tar)) !== null,
    })),
  );
}

function formatOf(shard: string): LayoutName {
  if (shard.endsWith('.msgpack')) return 'msgpack';
  if (shard.endsWith('.mdb')) return 'lmdb';
  if (shard.endsWith('.tar')) return 'tar';
  throw new FileError(
    { path: shard },
    `${shard} is no tar by its name; give files that end in .tar, or a folder of them.`,
  );
}

async function buildIndex({ path: shard, format }: ShardToIndex): Promise<{ index: ShardIndex; skipped: number }> {
  if (format === 'lmdb') {
    throw new UnsupportedShardError(
      { shard },
      `${shard}: an LMDB shard does not say in which order its samples were packed, so its index cannot be made anew; ` +
        'restore the index from a copy, or pack again.',
    );
  }
  const source = await openSource(shard);
  try {
    let skipped = 0;
    const index = await buildShardIndex(await layoutOf(format), source, () => {
      skipped++;
    });
    return { index, skipped };
  } finally {
    await source.close();
  }
}
