/** Verifies shards and repairs them, one message a shard. */
import { workerData } from 'node:worker_threads';
import { MAX_PIXELS } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import { answer, takeMessages } from '../crew/worker-jobs.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import type { VerifyAnswer, VerifyJob } from '../verify/verify.js';
import { verifyShard } from '../verify/verify-shard.js';
import { type RepairedShard, type RepairSetting, repairShard } from './repair-shard.js';

export interface RepairJob {
  readonly number: number;
  readonly shard: DatasetShard;
}

/** A shard is verified first, and repaired where that finds something. */
export type ShardWork = ({ readonly type: 'verify' } & VerifyJob) | ({ readonly type: 'repair' } & RepairJob);

export interface RepairAnswer {
  readonly number: number;
  readonly repaired: RepairedShard;
}

const setting = workerData as RepairSetting;
let checker: Promise<Checker> | undefined;

takeMessages((work: ShardWork) => {
  answer<VerifyAnswer | RepairAnswer>(() => (work.type === 'verify' ? verify(work) : repair(work)));
});

async function verify({ number, shard }: VerifyJob): Promise<VerifyAnswer> {
  return { number, verdict: await verifyShard(shard, setting.decode ? await loadChecker() : null) };
}

async function repair({ number, shard }: RepairJob): Promise<RepairAnswer> {
  return { number, repaired: await repairShard(shard, setting, loadChecker) };
}

/** Codecs are loaded where an image has to be judged by decoding it. */
function loadChecker(): Promise<Checker> {
  checker ??= import('@shardtool/reader').then(({ createChecker }) => createChecker({ maxPixels: MAX_PIXELS }));
  return checker;
}
