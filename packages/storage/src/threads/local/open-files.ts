/** How files are opened and closed, and how many stay open. */
export interface OpenFilesOptions {
  most(): number;
  /** The number by which all threads of this process know the file (a file descriptor). */
  open(path: string): Promise<number>;
  close(file: number): Promise<void>;
}

interface OpenFile {
  readonly number: Promise<number>;
  users: number;
  /** It is not to be found any more; whoever uses it last closes it. */
  isDropped: boolean;
}

/**
 * Files that all threads share, of which those stay open that were used last. The system gives the number of a closed file to the
 * next one that is opened, so a file is closed only when nobody uses it, and nobody else may close it.
 */
export class OpenFiles {
  readonly #options: OpenFilesOptions;
  /** By path, what was used longest ago first. */
  readonly #files = new Map<string, OpenFile>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: OpenFilesOptions) {
    this.#options = options;
  }

  /** What `work` makes of the open file, whose number counts until that resolves. One that cannot be opened is tried anew the next time. */
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

  /** Resolves when all that nobody uses is closed; what is used is closed after that. */
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

  /** Closes as many as there are too many: fewer may stay open than before. */
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
