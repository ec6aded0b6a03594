import { type Manifest, sidecarPaths } from '@shardtool/format';
import { notedIndexes } from '../output/pack-note.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { readWidsIndex, widsSums, writeWidsIndex } from '../shard/other-indexes.js';
import type { OpenChange } from './dataset-change.js';

/**
 * Writes the wids index for the shards of `next`, if the dataset has one. `made` are shards that the change has written.
 * Shards that the present index does not name are read for their checksums.
 */
export async function updateWidsIndex(
  { folder, destination }: OpenChange,
  next: Manifest,
  made: readonly ShardRecord[],
): Promise<void> {
  if (!notedIndexes(folder.path).includes('wids')) return;
  await destination.fetchFiles(sidecarPaths(['wids']));
  const sums = new Map(made.map(({ file, md5 }) => [file, md5]));
  const others = next.shards.filter(({ file }) => !sums.has(file));
  const listed = new Set(widsSums(folder.path).map(([name]) => name));
  await destination.fetchFiles(others.map(({ file }) => file).filter((file) => !listed.has(file)));
  const known = new Map(readWidsIndex(folder.path, others).map((shard) => [shard.file, shard]));
  await writeWidsIndex(
    folder.path,
    next.shards.map(({ file, samples, bytes }) => known.get(file) ?? { file, samples, bytes, md5: sums.get(file)! }),
  );
}
