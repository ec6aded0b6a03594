import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/**
 * `PID-STARTED-PLACE-RANDOM`. PID and STARTED (clock ticks since boot, 0 if unknown) name a process within PLACE, a hash of
 * the host name, the boot id and the pid namespace. Process numbers can only be looked up in the same PLACE. RANDOM tells
 * two uses by one process apart. A token fits into a file name.
 */
const TOKEN = /^(\d+)-(\d+)-([0-9a-f]{8})-[0-9a-f]{8}$/;

/** The same pattern as part of a longer expression. */
export const TOKEN_PATTERN = '\\d+-\\d+-[0-9a-f]{8}-[0-9a-f]{8}';

/** State of the process that made a token. `unknown`: it runs elsewhere, so that its state cannot be determined. */
export type ProcessState = 'running' | 'stopped' | 'gone' | 'unknown';

let own: string | undefined;
let ownPlace: string | undefined;

/** A new token of this process. */
export function newToken(): string {
  own ??= `${process.pid}-${statusOf(process.pid)?.started ?? 0}-${placeOfProcess()}`;
  return `${own}-${randomBytes(4).toString('hex')}`;
}

/** Returns the state of the process that made the token. */
export function stateOf(token: string): ProcessState {
  const [, pid, started, place] = TOKEN.exec(token) ?? [];
  if (pid === undefined || place !== placeOfProcess()) return 'unknown';
  if (!exists(Number(pid))) return 'gone';
  const status = statusOf(Number(pid));
  // Without start times, a process number that was given to another process cannot be recognized.
  if (status === null || started === '0') return 'unknown';
  // A zombie no longer runs, although its parent has not waited for it yet.
  if (status.started !== Number(started) || 'ZXx'.includes(status.state)) return 'gone';
  return 'Tt'.includes(status.state) ? 'stopped' : 'running';
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

interface ProcessStatus {
  readonly state: string;
  /** Start time of a process in clock ticks since boot. */
  readonly started: number;
}

let hasOwnProc: boolean | undefined;

/** Fields 3 and 22 of proc_pid_stat(5). Null if the system does not provide them. */
function statusOf(pid: number): ProcessStatus | null {
  // A process in a new pid namespace may still see the /proc of the parent namespace, where process numbers differ.
  hasOwnProc ??= statOf('self')?.startsWith(`${process.pid} `) ?? false;
  const stat = hasOwnProc ? statOf(String(pid)) : null;
  if (stat === null) return null;
  // The name of the program is in parentheses and may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0]!, started: Number(fields[19]) };
}

function statOf(pid: string): string | null {
  return orNull(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

function placeOfProcess(): string {
  ownPlace ??= createHash('sha256')
    .update(
      JSON.stringify([
        hostname(),
        orNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1')),
        orNull(() => readlinkSync('/proc/self/ns/pid')),
      ]),
    )
    .digest('hex')
    .slice(0, 8);
  return ownPlace;
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
