import { Interrupted } from './outcome.js';

/**
 * Does `work` and has it stopped by Ctrl-C, or when the system asks the process to end. It then throws
 * {@link Interrupted}, with `remedy` behind it.
 */
export async function stoppable<T>(remedy: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const stop = (signal: NodeJS.Signals) => {
    const known = signal === 'SIGTERM' ? signal : 'SIGINT';
    interrupt.abort(new Interrupted(known, `stopped by ${signal}.${remedy}`));
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    return await work(interrupt.signal);
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}
