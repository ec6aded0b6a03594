/** Verifies shards, one message per shard. */
import { workerData } from 'node:worker_threads';
import { checkShard } from '../check/check-shard.js';
import { answer, takeMessages } from '../workers/worker-jobs.js';
import type { VerifyAnswer, VerifyJob } from './verify.js';

export interface VerifyWorkerData {
  readonly decode: boolean;
  readonly maxPixels: number;
}

const { decode, maxPixels } = workerData as VerifyWorkerData;
// Codecs are loaded only if images are decoded.
const checker = decode ? await (await import('@shardtool/reader')).createChecker({ maxPixels }) : null;

takeMessages(({ number, shard }: VerifyJob) => {
  answer<VerifyAnswer>(async () => ({ number, verdict: await checkShard(shard, checker) }));
});
