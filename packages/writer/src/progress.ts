import { WatchedCallbacks } from '@shardtool/base';
import type { PackProgress } from './options.js';

const INTERVAL_MS = 100;

/** Reports the progress of the current stage to a callback about ten times per second. The caller must close it. */
export class ProgressTicker {
  readonly #tell: (progress: PackProgress) => void;
  readonly #done: () => { files: number; bytes: number };
  readonly #timer: NodeJS.Timeout | undefined;
  #stage: PackProgress['stage'] = 'scan';
  #totalFiles = 0;
  #totalBytes = 0;
  #found = 0;

  /** `done` returns what the workers have finished of the current stage. */
  constructor(
    onProgress: ((progress: PackProgress) => void) | undefined,
    done: () => { files: number; bytes: number },
  ) {
    this.#tell = onProgress ?? (() => undefined);
    this.#done = done;
    if (onProgress !== undefined) this.#timer = setInterval(() => this.#tick(), INTERVAL_MS);
  }

  begin(stage: PackProgress['stage'], totalFiles = 0, totalBytes = 0): void {
    this.#stage = stage;
    this.#totalFiles = totalFiles;
    this.#totalBytes = totalBytes;
  }

  /** Reports the number of files found so far, during the scan. */
  found(files: number): void {
    this.#found = files;
  }

  /** Reports the final state. */
  close(): void {
    clearInterval(this.#timer);
    this.#tick();
  }

  #tick(): void {
    const { files, bytes } = this.#stage === 'scan' ? { files: this.#found, bytes: 0 } : this.#done();
    try {
      this.#tell({ stage: this.#stage, files, totalFiles: this.#totalFiles, bytes, totalBytes: this.#totalBytes });
    } catch {
      // The error cannot be caught here: `endingOnProgressError` records it and stops the work.
    }
  }
}

/** Work that reports its progress and can be stopped. */
export interface Stoppable {
  readonly done: { readonly files: number; readonly bytes: number };
  stop(): void;
  close(): Promise<void>;
}

export interface ProgressOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: PackProgress) => void) | undefined;
}

/**
 * Runs `work` with these options. If `onProgress` throws or rejects, the work is stopped as if by `signal`, and the
 * returned promise rejects with that error.
 */
export function endingOnProgressError<Options extends ProgressOptions, T>(
  options: Options,
  work: (options: Options) => Promise<T>,
): Promise<T> {
  const { onProgress, signal } = options;
  if (onProgress === undefined) return work(options);
  const failed = new AbortController();
  const callbacks = new WatchedCallbacks(() => failed.abort());
  const given = {
    ...options,
    onProgress: callbacks.wrap(onProgress),
    signal: signal instanceof AbortSignal ? AbortSignal.any([signal, failed.signal]) : (signal ?? failed.signal),
  };
  return callbacks.watch(() => work(given));
}

/** Runs `work`, reports the progress of `workers`, stops them when `signal` is aborted, and closes them at the end. */
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
