import { coresOfThisRank } from '@shardtool/base';
import type { WorkerMessage } from './decode-worker.js';
import { DecodeWorkers } from './decode-workers.js';

export type Workers = DecodeWorkers<WorkerMessage>;

/**
 * Starts decode workers before it is known what they do: `count` or one per core, and at most one per core, in case that there is
 * no memory for more.
 */
export function startWorkers(count: number | undefined): Workers {
  const cores = coresOfThisRank();
  return new DecodeWorkers(new URL('./decode-worker.cjs', import.meta.url), Math.min(count ?? cores, cores));
}
