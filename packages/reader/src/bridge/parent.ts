import { constants } from 'node:os';
import { nativeCalls } from '@shardtool/base';

/** prctl(2), <linux/prctl.h> */
const PR_SET_PDEATHSIG = 1;
const LOOK_EVERY_MS = 1000;

/**
 * Ends this process when its parent `pid` has ended. The end of standard input shows this too, unless another process
 * has inherited the pipe. With `kill`, the Linux kernel ends this process immediately, even if it hangs. The kernel
 * does that when the *thread* of the parent that started this process ends, so use it only if that is the main thread
 * of the parent.
 */
export async function endWithParent({ pid, kill }: { readonly pid: number; readonly kill: boolean }): Promise<void> {
  if (kill && process.platform === 'linux') {
    const prctl = nativeCalls<typeof import('koffi').default>()
      .load(null)
      .func('prctl', 'int', ['int', 'unsigned long', 'unsigned long']);
    prctl(PR_SET_PDEATHSIG, constants.signals.SIGKILL, 0);
  }
  // The parent may have ended before the kernel was asked.
  const look = (): void => {
    if (process.ppid !== pid) process.exit(0);
  };
  look();
  setInterval(look, LOOK_EVERY_MS).unref();
}
