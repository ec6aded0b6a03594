/** Functions that open and close files, and the maximum number of open files. */
export interface OpenFilesOptions {
  most(): number;
  /** Returns the file descriptor, which is valid in all threads of this process. */
  open(path: string): Promise<number>;
  close(file: number): Promise<void>;
}

interface OpenFile {
  readonly number: Promise<number>;
  users: number;
  /** True if the file was removed from the map. Its last user closes it. */
  isDropped: boolean;
}

/**
 * Open files that all threads share. The least recently used ones are closed first. The system may give the descriptor
 * of a closed file to the next file that is opened, so a file is closed only here, and only when it has no users.
 */
export class OpenFiles {
  readonly #options: OpenFilesOptions;
  /** Files by path, least recently used first. */
  readonly #files = new Map<string, OpenFile>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: OpenFilesOptions) {
    this.#options = options;
  }

  /**
   * Calls `work` with the descriptor of an open file, which stays valid until the promise of `work` settles. If the
   * file cannot be opened, the next call tries again.
   */
  async use<Result>(path: string, work: (file: number) => Promise<Result>): Promise<Result> {
    const file = this.#files.get(path) ?? this.#open(path);
    this.#files.delete(path);
    this.#files.set(path, file);
    file.users++;
    this.closeOldest();
    try {
      return await work(await file.number);
    } finally {
      file.users--;
      this.#closeUnused(file);
    }
  }

  /** Resolves when all unused files are closed. Files in use are closed when their last user has finished. */
  async close(): Promise<void> {
    for (const path of [...this.#files.keys()]) this.#drop(path);
    await Promise.all(this.#closing);
  }

  #open(path: string): OpenFile {
    const file = { number: this.#options.open(path), users: 0, isDropped: false };
    file.number.catch(() => {
      if (this.#files.get(path) === file) this.#files.delete(path);
    });
    return file;
  }

  /** Closes the least recently used files above the limit, which may have become lower. */
  closeOldest(): void {
    const most = this.#options.most();
    for (const path of this.#files.keys()) {
      if (this.#files.size <= most) return;
      this.#drop(path);
    }
  }

  #drop(path: string): void {
    const file = this.#files.get(path)!;
    this.#files.delete(path);
    file.isDropped = true;
    this.#closeUnused(file);
  }

  #closeUnused({ number, users, isDropped }: OpenFile): void {
    if (!isDropped || users > 0) return;
    const closing = number.then((open) => this.#options.close(open)).catch(() => {});
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }
}
