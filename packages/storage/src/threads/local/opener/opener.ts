import type { OpenedFile } from '../../calls.js';
import { type Call, OpenerChild, OpenerEndedError, type User } from './child.js';

/** The child process that all users in this process share. */
let shared: OpenerChild | null = null;

/**
 * Opens local files of a slow file system in a separate process. That process opens 64 files at a time for the
 * CPU time of two JavaScript threads, which would open two files at a time. Keeps this process alive only while
 * calls wait for an answer.
 */
export class Opener implements User {
  underWay = 0;
  readonly #child: OpenerChild;
  readonly #calls = new Set<Call>();

  private constructor(child: OpenerChild) {
    this.#child = child;
    child.users.add(this);
  }

  /** Returns a new user of the shared child process, or null if the system does not support it. */
  static get(): Opener | null {
    try {
      if (shared === null || shared.hasEnded || shared.isHeldUp) shared = new OpenerChild();
      return new Opener(shared);
    } catch {
      return null;
    }
  }

  /**
   * Opens a file and returns its descriptor in this process. The caller closes it. Throws `FileError` or {@link
   * OpenerEndedError}.
   */
  open(path: string): Promise<OpenedFile> {
    return this.#ask('open', path) as Promise<OpenedFile>;
  }

  /** Returns all bytes of a file. Calls to open files have priority. Throws `FileError` or {@link OpenerEndedError}. */
  readFile(path: string): Promise<Uint8Array> {
    return this.#ask('whole', path) as Promise<Uint8Array>;
  }

  /** Rejects calls that have no answer yet with {@link OpenerEndedError}. The last user ends the child process. */
  release(): void {
    for (const call of this.#calls) {
      call.isDropped = true;
      call.reject(new OpenerEndedError());
    }
    this.#child.leave(this);
  }

  async #ask(kind: Call['kind'], path: string): Promise<OpenedFile | Uint8Array> {
    let call!: Call;
    const answered = new Promise<OpenedFile | Uint8Array>((resolve, reject) => {
      call = { user: this, kind, path, isDropped: false, resolve, reject };
    });
    this.#calls.add(call);
    this.#child.ask(call);
    try {
      return await answered;
    } finally {
      this.#calls.delete(call);
    }
  }
}
