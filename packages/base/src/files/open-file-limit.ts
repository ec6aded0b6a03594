import { readFileSync } from 'node:fs';

/** The usual limit of Linux. */
const USUAL_LIMIT = 1024;

let limit: number | undefined;

/**
 * Number of files that this process may have open (`ulimit -n`). Node raises it to the hard limit when it starts. 1,024 if
 * it cannot be determined.
 */
export function openFileLimit(): number {
  limit ??= readLimit();
  return limit;
}

function readLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? USUAL_LIMIT);
  } catch {
    return USUAL_LIMIT;
  }
}
