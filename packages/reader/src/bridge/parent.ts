import { constants } from 'node:os';
import { nativeCalls } from '@shardtool/base';

/** prctl(2), <linux/prctl.h> */
const PR_SET_PDEATHSIG = 1;
const LOOK_EVERY_MS = 1000;

/**
 * Ends this process when its parent `pid` is gone. The end of standard input tells so, too, but not where another process
 * has inherited the pipe. `kill` has the kernel (of Linux) do it at once, even if this process hangs: but it does so when
 * the parent's *thread* ends that started this process, so it is for the parent's main thread alone.
 */
export async function endWithParent({ pid, kill }: { readonly pid: number; readonly kill: boolean }): Promise<void> {
  if (kill && process.platform === 'linux') {
    const prctl = nativeCalls<typeof import('koffi').default>()
      .load(null)
      .func('prctl', 'int', ['int', 'unsigned long', 'unsigned long']);
    prctl(PR_SET_PDEATHSIG, constants.signals.SIGKILL, 0);
  }
  // The parent may have gone before the kernel was asked.
  const look = (): void => {
    if (process.ppid !== pid) process.exit(0);
  };
  look();
  setInterval(look, LOOK_EVERY_MS).unref();
}
