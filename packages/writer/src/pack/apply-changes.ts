import type { Manifest } from '@shardtool/format';
import { followOverlays } from '@shardtool/reader';
import { openStorage } from '@shardtool/storage';
import { forgetChange } from '../change/pending.js';
import { updateWidsIndex } from '../change/wids-index.js';
import { manifestWithout, type RemovedRows, removedRows, rewriteShards } from '../change/without-samples.js';
import { readBaseIndex } from '../output/append-base.js';
import { readTombstones } from '../output/tombstones.js';
import type { PackWork } from './workers/work.js';

/** The dataset without the samples that an append replaces or removes. */
export interface ReplacedBase {
  readonly manifest: Manifest;
  /** Ends the change after the commit. */
  finish(): Promise<void>;
}

/**
 * Writes the shards of the dataset again that have samples whose files are gone, or that the new shards replace.
 * `replaced`: their rows, by the file of the shard. Earlier versions keep the samples.
 */
export async function withoutReplaced(
  work: PackWork,
  replaced: Readonly<Record<string, readonly number[]>>,
): Promise<ReplacedBase> {
  const { base, folder, destination, options } = work;
  const { manifest, location, storage } = base!;
  const rows = new Map<number, RemovedRows>();
  for (const [shard, { file }] of manifest.shards.entries()) {
    const wanted = new Set(replaced[file]);
    if (wanted.size === 0) continue;
    const index = await readBaseIndex(base!, file, ['key', 'cls', 'fields']);
    rows.set(
      shard,
      removedRows(index, (row) => wanted.has(row)),
    );
  }
  const change = { location, storage, signal: options.signal, folder, destination, manifest };
  const made = await rewriteShards(change, rows, 'change its source dataset, and convert that again');
  const next = manifestWithout(manifest, rows, made.records);
  const written = made.records.filter(({ samples }) => samples > 0);
  // If all samples are replaced, only the new shards are in that index, which the commit writes.
  if (next.samples > 0) await updateWidsIndex(change, next, written);
  return {
    manifest: next,
    async finish() {
      const place = await openStorage(location, storage);
      const erased = await readTombstones(place);
      await followOverlays(location, { storage, isErased: (key) => erased.has(key) });
      await forgetChange(place, made.announced);
    },
  };
}
