/** Verifies and repairs shards, one message per shard. */
import { workerData } from 'node:worker_threads';
import type { VerifyAnswer } from '../verify/verify.js';
import { answer, takeMessages } from '../workers/worker-jobs.js';
import { type RepairAnswer, RepairJobs, type ShardWork } from './repair-job.js';
import type { RepairSetting } from './repair-shard.js';

const jobs = new RepairJobs(workerData as RepairSetting);

takeMessages((work: ShardWork) => {
  answer<VerifyAnswer | RepairAnswer>(() => jobs.work(work));
});
