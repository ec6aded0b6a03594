import { rename } from 'node:fs/promises';
import path from 'node:path';
import { findSidecars, packedSidecarPath, placeSidecar, type SidecarName, sidecarPath } from '@shardtool/format';

/** Sidecar files of a shard that have an extension of shardtool. */
const KINDS: readonly SidecarName[] = ['index', 'crops', 'inspection'];

/**
 * Moves sidecar files that an earlier version wrote next to a shard to their current paths. The earlier paths were a
 * problem next to Parquet: Spark and pyarrow read the index as a shard, and counted every sample twice.
 */
export async function moveFromEarlierPlaces(shard: string, isPacked: boolean): Promise<void> {
  for (const kind of KINDS) {
    const found = isPacked ? await packedSidecarPath(kind, shard) : await findSidecars(kind, shard);
    if (found === null) continue;
    const place = isPacked ? sidecarPath(kind, shard) : await placeSidecar(kind, shard);
    // Files that are elsewhere because this folder is not writable stay there.
    if (found !== place && (isPacked || path.dirname(found) === path.dirname(place))) await rename(found, place);
  }
}
