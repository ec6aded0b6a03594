/** Repairs shards, one message a shard. */
import { parentPort, workerData } from 'node:worker_threads';
import { MAX_PIXELS } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { DatasetShard } from '../dataset-shards.js';
import { recordError } from '../error-record.js';
import type { Answer } from '../worker-pool.js';
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

parentPort!.on('message', ({ number, shard }: RepairJob) => {
  const reply = (answer: Answer<RepairAnswer>) => parentPort!.postMessage(answer);
  repairShard(shard, setting, loadChecker).then(
    (repaired) => reply({ result: { number, repaired } }),
    (error) => reply({ error: recordError(error) }),
  );
});

/** Codecs are loaded where an image has to be judged by decoding it. */
function loadChecker(): Promise<Checker> {
  checker ??= import('@shardtool/reader').then(({ createChecker }) => createChecker({ maxPixels: MAX_PIXELS }));
  return checker;
}
