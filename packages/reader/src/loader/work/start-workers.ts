import { coresOfThisRank } from '@shardtool/base';
import type { WorkerMessage } from './decode-worker.js';
import { DecodeWorkers } from './decode-workers.js';

export type Workers = DecodeWorkers<WorkerMessage>;

/**
 * Starts decode workers before it is known what they do: `count`, or one per core. It starts at most one per core, because there
 * may be no memory for more. `spare`: number of cores that other threads need meanwhile.
 */
export function startWorkers(count: number | undefined, spare = 0): Workers {
  const cores = coresOfThisRank();
  const started = Math.max(1, Math.min(count ?? cores, cores - spare));
  return new DecodeWorkers(new URL('./decode-worker.cjs', import.meta.url), started);
}
