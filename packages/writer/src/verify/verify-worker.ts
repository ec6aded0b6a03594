/** Verifies shards, one message a shard. */
import { parentPort, workerData } from 'node:worker_threads';
import { createChecker } from '@shardtool/reader';
import { recordError } from '../error-record.js';
import { type ShardToVerify, verifyShard } from './verify-shard.js';

export interface VerifyWorkerData {
  readonly decode: boolean;
  readonly maxPixels: number;
}

const { decode, maxPixels } = workerData as VerifyWorkerData;
const checker = decode ? await createChecker({ maxPixels }) : null;

parentPort!.on('message', (shard: ShardToVerify) => {
  verifyShard(shard, checker).then(
    (result) => parentPort!.postMessage({ result }),
    (error) => parentPort!.postMessage({ error: recordError(error) }),
  );
});
