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
