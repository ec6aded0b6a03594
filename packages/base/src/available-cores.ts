import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

/**
 * Number of CPU cores that this process may use: those of its affinity mask, but at most the CPU limit of its control
 * group, rounded up. Docker's `--cpus` and Kubernetes' `resources.limits.cpu` set such a limit, which Node 20 ignores.
 */
export function availableCores(): number {
  return Math.min(availableParallelism(), Math.max(1, Math.ceil(coresOfControlGroup('/'))));
}

/**
 * Cores for each of the processes of a training job on this machine: those of {@link availableCores}, divided by
 * LOCAL_WORLD_SIZE, which torchrun sets. At least 1.
 */
export function coresOfThisRank(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const { LOCAL_WORLD_SIZE = '' } = env;
  const ranks = /^\d+$/.test(LOCAL_WORLD_SIZE) ? Number(LOCAL_WORLD_SIZE) : 1;
  return Math.max(1, Math.floor(availableCores() / Math.max(1, ranks)));
}

/**
 * Smallest CPU limit, in cores, of the control groups of this process below the file system `root`; infinite without a
 * limit. Reads versions 1 and 2: https://docs.kernel.org/admin-guide/cgroup-v2.html (cpu.max) and
 * https://docs.kernel.org/scheduler/sched-bwc.html (cpu.cfs_quota_us).
 */
export function coresOfControlGroup(root: string): number {
  const read = (...parts: string[]) => {
    try {
      return readFileSync(path.join(root, ...parts), 'utf8').trim();
    } catch {
      return ''; // Not Linux, not mounted, or a group outside the container's namespace.
    }
  };
  let cores = Number.POSITIVE_INFINITY;
  for (const line of read('proc/self/cgroup').split('\n')) {
    const [, controllers = '', group] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    // Version 2 has one hierarchy, without a list of controllers.
    const isVersion2 = controllers === '';
    if (group === undefined || !(isVersion2 || controllers.split(',').includes('cpu'))) continue;
    for (let folder = group; ; folder = path.posix.dirname(folder)) {
      const place = ['sys/fs/cgroup', controllers, folder];
      const limits = isVersion2
        ? read(...place, 'cpu.max').split(' ')
        : [read(...place, 'cpu.cfs_quota_us'), read(...place, 'cpu.cfs_period_us')];
      const [quota, period] = limits.map(Number);
      // "max" and -1 stand for no limit.
      if (quota && period && quota > 0) cores = Math.min(cores, quota / period);
      if (folder === '/') break;
    }
  }
  return cores;
}
