import type { PackProgress } from './options.js';
import { ProgressTicker } from './progress.js';

/** Something that works, says how far it is, and can be stopped. */
export interface Stoppable {
  readonly done: { readonly files: number; readonly bytes: number };
  stop(): void;
  close(): Promise<void>;
}

export interface ProgressOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: PackProgress) => void) | undefined;
}

/** Does `work`, tells how far `workers` are, stops them when `signal` says so, and closes them in the end. */
export async function withProgress<T>(
  workers: Stoppable,
  { signal, onProgress }: ProgressOptions,
  work: (ticker: ProgressTicker) => Promise<T>,
): Promise<T> {
  const ticker = new ProgressTicker(onProgress, () => workers.done);
  const stop = () => workers.stop();
  signal?.addEventListener('abort', stop);
  try {
    return await work(ticker);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    ticker.close();
    await workers.close();
  }
}
