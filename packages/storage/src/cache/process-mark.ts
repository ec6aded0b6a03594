import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process that cannot be asked, since it is on another machine or in another container, is taken for dead after so long. */
export const UNKNOWN_MS = 10 * 60_000;

/** What a mark says: `PID-BORN-PLACE`. */
const MARK = /^(\d+)-(\d+)-([0-9a-f]{12})$/;

let own: string | undefined;

/**
 * Names this process as no other one is ever named: by its number, by when it began, since numbers are given again, and by
 * the machine's start and the container, within which numbers count. Fit for a file name.
 */
export function ownMark(): string {
  own ??= `${process.pid}-${bornOf(process.pid) ?? 0}-${place()}`;
  return own;
}

/**
 * Whether the process of a mark has ended. `ageMs` is how long ago it left the mark: all that is known of a process that
 * cannot be asked. What is no mark is nobody's.
 */
export function isGone(mark: string, ageMs: number, unknownMs = UNKNOWN_MS): boolean {
  const [, pid, born, where] = MARK.exec(mark) ?? [];
  if (pid === undefined) return true;
  if (where !== place()) return ageMs > unknownMs;
  if (!isRunning(Number(pid))) return true;
  const now = bornOf(Number(pid));
  // Where a system does not say when a process began, a number that was given again is found out by time alone.
  return now === null ? ageMs > unknownMs : String(now) !== born;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** When a process began, in clock ticks since the machine did: proc_pid_stat(5), field 22. Null where the system does not say. */
function bornOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program stands in brackets, and may hold anything.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return null;
  }
}

let here: string | undefined;

/** This machine since its start, and the container. */
function place(): string {
  here ??= createHash('sha256')
    .update([hostname(), readOr(readBootId), readOr(() => readlinkSync('/proc/self/ns/pid'))].join('\n'))
    .digest('hex')
    .slice(0, 12);
  return here;
}

const readBootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1');

function readOr(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
