/** Repairs shards, one message a shard. */
import { workerData } from 'node:worker_threads';
import { MAX_PIXELS } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { DatasetShard } from '../dataset-shards.js';
import { answer, takeMessages } from '../worker-jobs.js';
import { type RepairedShard, type RepairSetting, repairShard } from './repair-shard.js';

export interface RepairJob {
  readonly number: number;
  readonly shard: DatasetShard;
}

export interface RepairAnswer {
  readonly number: number;
  readonly repaired: RepairedShard;
}

const setting = workerData as RepairSetting;
let checker: Promise<Checker> | undefined;

takeMessages(({ number, shard }: RepairJob) => {
  void answer<RepairAnswer>(async () => ({ number, repaired: await repairShard(shard, setting, loadChecker) }));
});

/** Codecs are loaded where an image has to be judged by decoding it. */
function loadChecker(): Promise<Checker> {
  checker ??= import('@shardtool/reader').then(({ createChecker }) => createChecker({ maxPixels: MAX_PIXELS }));
  return checker;
}
