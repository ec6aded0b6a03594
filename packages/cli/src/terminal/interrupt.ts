import { Interrupted } from './outcome.js';

/**
 * Runs `work`, and stops it at Ctrl-C or when the system asks the process to end. Then it throws {@link Interrupted}, whose message
 * ends with `remedy`.
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
