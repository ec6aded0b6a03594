import { readFileSync } from 'node:fs';

/** Processor time of the cores that this process may use, and of this process on any core, in seconds. */
export interface ProcessorTimes {
  /** Time that has passed, summed over the cores. */
  readonly all: number;
  /** Time in which they ran any program, or in which the host took them away. */
  readonly busy: number;
  readonly own: number;
}

/** Share of the processor time that other programs use from which rates are uncertain. */
export const BUSY = 0.1;
/** Ticks per second in /proc/stat: USER_HZ, see proc(5). */
const TICKS = 100;

/** Returns the times so far. Null on a system without /proc. */
export function processorTimes(): ProcessorTimes | null {
  try {
    const status = readFileSync('/proc/self/status', 'utf8');
    const cores = coresOf(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)![1]!);
    const { user, system } = process.cpuUsage();
    return { ...timesOf(readFileSync('/proc/stat', 'utf8'), cores), own: (user + system) / 1e6 };
  } catch {
    return null;
  }
}

/** Share of the processor time between two moments that other programs used, from 0 to 1. Null if it is not known. */
export function shareOfOthers(from: ProcessorTimes | null, to: ProcessorTimes | null): number | null {
  if (from === null || to === null || to.all <= from.all) return null;
  const others = to.busy - from.busy - (to.own - from.own);
  return Math.min(1, Math.max(0, others / (to.all - from.all)));
}

/** The numbers in a list such as `0-3,8`. */
export function coresOf(list: string): ReadonlySet<number> {
  const ranges = list.split(',').map((range) => range.split('-').map(Number));
  return new Set(ranges.flatMap(([from, to = from]) => Array.from({ length: to! - from! + 1 }, (_, i) => from! + i)));
}

/** Times of these cores in the text of /proc/stat. */
export function timesOf(stat: string, cores: ReadonlySet<number>): Pick<ProcessorTimes, 'all' | 'busy'> {
  let [all, idle] = [0, 0];
  for (const [, core, times] of stat.matchAll(/^cpu(\d+) (.*)$/gm)) {
    if (!cores.has(Number(core))) continue;
    // user, nice, system, idle, iowait, irq, softirq, steal. The time of guests, which follows, is part of user and nice.
    const ticks = times!.split(' ').slice(0, 8).map(Number);
    all += ticks.reduce((sum, one) => sum + one, 0);
    idle += ticks[3]! + ticks[4]!;
  }
  return { all: all / TICKS, busy: (all - idle) / TICKS };
}
