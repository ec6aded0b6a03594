import { readdirSync, readFileSync } from 'node:fs';

/** PF_EXITING of Linux's include/linux/sched.h, in the flags of proc(5)'s `stat`. */
const EXITING = 4;

function isRunning(thread: string): boolean {
  try {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1');
    const flags = Number(stat.slice(stat.lastIndexOf(') ') + 2).split(' ')[6]);
    return (flags & EXITING) === 0;
  } catch {
    return false;
  }
}

/**
 * Number of threads of this process. Linux lists a thread for a moment after it was joined: it wakes the joining thread before it
 * removes the entry. Such a thread is exiting, and does not count.
 */
export const runningThreads = () => readdirSync('/proc/self/task').filter(isRunning).length;
