import { rename } from 'node:fs/promises';
import path from 'node:path';
import { findSidecars, packedSidecarPath, placeSidecar, type SidecarName, sidecarPath } from '@shardtool/format';

/** The files of ours beside a shard that have an extension of our own. */
const KINDS: readonly SidecarName[] = ['index', 'crops', 'inspection'];

/**
 * Moves what an earlier build wrote beside a shard to where it is written today. Beside Parquet it was in the way: Spark and
 * pyarrow took it for a shard, and counted every sample twice.
 */
export async function moveFromEarlierPlaces(shard: string, isPacked: boolean): Promise<void> {
  for (const kind of KINDS) {
    const found = isPacked ? await packedSidecarPath(kind, shard) : await findSidecars(kind, shard);
    if (found === null) continue;
    const place = isPacked ? sidecarPath(kind, shard) : await placeSidecar(kind, shard);
    // What had to go elsewhere, since nothing can be written here, stays there.
    if (found !== place && (isPacked || path.dirname(found) === path.dirname(place))) await rename(found, place);
  }
}
