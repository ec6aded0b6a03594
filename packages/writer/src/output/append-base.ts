import type { Manifest } from '@shardtool/format';
import type { QuarantinedFile } from '../shard/shard-job.js';

/** The dataset that a pack adds shards to. */
export interface AppendBase {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Files that were bad when it was packed. */
  readonly quarantined: readonly QuarantinedFile[];
}
