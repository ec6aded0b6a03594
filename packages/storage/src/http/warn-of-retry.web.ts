import { warn } from '@shardtool/base';
import type { Retry } from '../storage.js';

/** Minimum time between warnings of a page. */
const WARNING_EVERY_MS = 60_000;
let lastMs = Number.NEGATIVE_INFINITY;

/** Warns about the first failure of an outage immediately. */
export function warnOfRetry({ location, reason }: Retry): void {
  const now = performance.now();
  if (now - lastMs < WARNING_EVERY_MS) return;
  lastMs = now;
  warn('SHARDTOOL_RETRY', `${location}: ${reason}. shardtool tries again.`);
}
