import type { PackProgress } from './options.js';

const INTERVAL_MS = 100;

/** Tells a callback some ten times a second how far the stage in hand is. Whoever makes one closes it. */
export class ProgressTicker {
  readonly #tell: (progress: PackProgress) => void;
  readonly #done: () => { files: number; bytes: number };
  readonly #timer: NodeJS.Timeout | undefined;
  #stage: PackProgress['stage'] = 'scan';
  #totalFiles = 0;
  #totalBytes = 0;
  #found = 0;

  /** `done` says what the workers have done of the stage in hand. */
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

  /** While scanning: how many files were found. */
  found(files: number): void {
    this.#found = files;
  }

  /** Tells the last state. */
  close(): void {
    clearInterval(this.#timer);
    this.#tick();
  }

  #tick(): void {
    const { files, bytes } = this.#stage === 'scan' ? { files: this.#found, bytes: 0 } : this.#done();
    this.#tell({ stage: this.#stage, files, totalFiles: this.#totalFiles, bytes, totalBytes: this.#totalBytes });
  }
}

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
