import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads';
import { warn } from '@shardtool/base';
import type { Retry } from '../storage.js';

/** Minimum time between warnings of all threads of a process: a host that is down fails many reads at once. */
const WARNING_EVERY_S = 60;
const WARNED = 'shardtool.retry-warned';
if (isMainThread) setEnvironmentData(WARNED, new Int32Array(new SharedArrayBuffer(4)));

/** Warns about the first failure of an outage immediately, because a process without a terminal would wait for minutes silently. */
export function warnOfRetry({ location, reason }: Retry): void {
  const warned = getEnvironmentData(WARNED) as Int32Array;
  const now = Math.floor(Date.now() / 1000);
  const last = Atomics.load(warned, 0);
  if (now - last < WARNING_EVERY_S || Atomics.compareExchange(warned, 0, last, now) !== last) return;
  warn('SHARDTOOL_RETRY', `${location}: ${reason}. shardtool tries again.`);
}
