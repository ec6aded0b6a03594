import type { OpenedFile } from '../../calls.js';
import { type Call, OpenerChild, OpenerEndedError, type User } from './child.js';

/** All of this process have their files opened by the same one. */
let shared: OpenerChild | null = null;

/**
 * Opens files of this machine whose file system is slow, in a process of its own: 64 at a time for the processor time of two
 * threads of JavaScript, of which each would open one at a time. Keeps this process alive only while something is asked.
 */
export class Opener implements User {
  underWay = 0;
  readonly #child: OpenerChild;
  readonly #calls = new Set<Call>();

  private constructor(child: OpenerChild) {
    this.#child = child;
    child.users.add(this);
  }

  /** One more user of this process's opener; null where there can be none. */
  static get(): Opener | null {
    try {
      if (shared === null || shared.hasEnded || shared.isHeldUp) shared = new OpenerChild();
      return new Opener(shared);
    } catch {
      return null;
    }
  }

  /** The number of the open file in this process, whose last user closes it. Throws `FileError`, {@link OpenerEndedError}. */
  open(path: string): Promise<OpenedFile> {
    return this.#ask('open', path) as Promise<OpenedFile>;
  }

  /** All of a file; files to be opened come first. Throws `FileError`, {@link OpenerEndedError}. */
  readFile(path: string): Promise<Uint8Array> {
    return this.#ask('whole', path) as Promise<Uint8Array>;
  }

  /** Rejects what has no answer yet with {@link OpenerEndedError}. The last user ends the process. */
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
