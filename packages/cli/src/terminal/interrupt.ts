import { Interrupted } from './outcome.js';
import { showWaiting } from './waiting.js';

/**
 * Does `work` and has it stopped by Ctrl-C, or when the system asks the process to end. It then throws
 * {@link Interrupted}, with `remedy` behind it. Says so if the work waits for another process.
 */
export async function stoppable<T>(remedy: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const stop = (signal: NodeJS.Signals) => {
    const known = signal === 'SIGTERM' ? signal : 'SIGINT';
    interrupt.abort(new Interrupted(known, `stopped by ${signal}.${remedy}`));
  };
  await showWaiting();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    return await work(interrupt.signal);
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}
