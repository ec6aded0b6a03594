/** Verifies shards, one message a shard. */
import { parentPort, workerData } from 'node:worker_threads';
import { recordError } from '../error-record.js';
import type { VerifyJob } from './verify.js';
import { verifyShard } from './verify-shard.js';

export interface VerifyWorkerData {
  readonly decode: boolean;
  readonly maxPixels: number;
}

const { decode, maxPixels } = workerData as VerifyWorkerData;
// Codecs are loaded where something is decoded, and nowhere else.
const checker = decode ? await (await import('@shardtool/reader')).createChecker({ maxPixels }) : null;

parentPort!.on('message', ({ number, shard }: VerifyJob) => {
  verifyShard(shard, checker).then(
    (verdict) => parentPort!.postMessage({ result: { number, verdict } }),
    (error) => parentPort!.postMessage({ error: recordError(error) }),
  );
});
