import { type ChildProcess, fork } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { OpenedFile } from '../../calls.js';
import { type Failed, revived } from '../../failed.js';
import { descriptors } from './descriptors.js';

/** The process opens so many files side by side. More wait here, so that what is urgent goes first. */
const SIDE_BY_SIDE = 64;
/** Of these each dataset finds so many free, and one that comes later, also where the file systems of others hang: of six of them. */
const OWN = 8;
/** What scripts/bundle.mjs makes of opener-process.ts. */
const PROCESS = new URL('./opener-process.cjs', import.meta.url);
/** The number of the way for open files in the process: behind standard input, output and error, and the channel. */
export const FILES_SOCKET = 4;

export interface OpenerRequest {
  readonly id: number;
  readonly kind: 'open' | 'whole';
  readonly path: string;
}

export type OpenerAnswer =
  | { readonly kind: 'ready' }
  /** The open file has come by its own way before. */
  | { readonly kind: 'opened'; readonly id: number; readonly size: number }
  | { readonly kind: 'whole'; readonly id: number; readonly bytes: Uint8Array }
  | Failed;

/** The process ended, or could not be started: somebody else has to open files. */
export class OpenerEndedError extends Error {}

/** One of those who ask. */
export interface User {
  /** How many of its files are being opened. */
  underWay: number;
}

/** What somebody asked for. */
export interface Call {
  readonly user: User;
  readonly kind: OpenerRequest['kind'];
  readonly path: string;
  /** Who asked has ended: a file that comes of it is closed. */
  isDropped: boolean;
  resolve(value: OpenedFile | Uint8Array): void;
  reject(error: Error): void;
}

/** The child process, for all who have files opened by it. */
export class OpenerChild {
  readonly users = new Set<User>();
  hasEnded = false;
  readonly #child: ChildProcess;
  readonly #socket: number;
  /** By number, what the process was asked for. */
  readonly #asked = new Map<number, Call>();
  /** Open files by number, whose answers have not come yet. */
  readonly #arrived = new Map<number, number | null>();
  readonly #soon: Call[] = [];
  readonly #later: Call[] = [];
  #isReady = false;
  #next = 0;

  /** Throws where this system cannot pass files from one process to another. */
  constructor() {
    const [here, there] = descriptors().pair();
    this.#socket = here;
    const { NODE_OPTIONS: _, NODE_EXTRA_CA_CERTS: __, ...env } = process.env;
    try {
      this.#child = fork(PROCESS, {
        env: { ...env, UV_THREADPOOL_SIZE: String(SIDE_BY_SIDE) },
        execArgv: [],
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'ignore', 'ipc', there],
      });
    } catch (error) {
      closeSync(here);
      throw error;
    } finally {
      closeSync(there);
    }
    this.#child.on('message', (answer: OpenerAnswer) => this.#hear(answer));
    for (const event of ['error', 'exit', 'disconnect']) this.#child.on(event, () => this.#end());
    this.#child.unref();
    this.#keepAlive();
  }

  ask(call: Call): void {
    if (this.hasEnded) {
      call.reject(new OpenerEndedError());
      return;
    }
    (call.kind === 'open' ? this.#soon : this.#later).push(call);
    this.#handOut();
  }

  leave(user: User): void {
    this.users.delete(user);
    if (this.users.size === 0) this.#end();
  }

  /** It still opens files for one who has left: where they hang they take the places of others. */
  get isHeldUp(): boolean {
    return [...this.#asked.values()].some(({ isDropped }) => isDropped);
  }

  #handOut(): void {
    while (this.#isReady && this.#asked.size < SIDE_BY_SIDE) {
      const call = this.#takeFrom(this.#soon) ?? this.#takeFrom(this.#later);
      if (call === undefined) break;
      if (call.isDropped) continue;
      call.user.underWay++;
      const id = this.#next++;
      this.#asked.set(id, call);
      this.#child.send({ id, kind: call.kind, path: call.path } satisfies OpenerRequest);
    }
    this.#keepAlive();
  }

  /** The first of one who has few under way, or leaves enough places to the others. */
  #takeFrom(queue: Call[]): Call | undefined {
    const free = SIDE_BY_SIDE - this.#asked.size;
    const at = queue.findIndex(
      ({ isDropped, user }) => isDropped || user.underWay < OWN || free > this.#keptFrom(user),
    );
    return at < 0 ? undefined : queue.splice(at, 1)[0];
  }

  /** Free places that are for others. */
  #keptFrom(user: User): number {
    let kept = OWN;
    for (const other of this.users) if (other !== user) kept += Math.max(0, OWN - other.underWay);
    return kept;
  }

  #keepAlive(): void {
    const { channel } = this.#child;
    if (this.#asked.size + this.#soon.length + this.#later.length > 0) channel?.ref();
    else channel?.unref();
  }

  #hear(answer: OpenerAnswer): void {
    if (this.hasEnded) return;
    if (answer.kind === 'ready') this.#isReady = true;
    else {
      const call = this.#asked.get(answer.id)!;
      this.#asked.delete(answer.id);
      call.user.underWay--;
      if (answer.kind === 'failed') call.reject(revived(answer));
      else if (answer.kind === 'whole') call.resolve(answer.bytes);
      else this.#pass(call, this.#fileOf(answer.id), answer.size);
    }
    this.#handOut();
  }

  #pass(call: Call, file: number | null, size: number): void {
    // Whoever opens it then finds out why.
    if (file === null) call.reject(new OpenerEndedError());
    else if (call.isDropped) closeSync(file);
    else call.resolve({ file, size });
  }

  /** The open file of that number, which has come, as have others whose answers come later; null where it could not be had here. */
  #fileOf(id: number): number | null {
    for (;;) {
      const file = this.#arrived.get(id);
      if (file !== undefined) {
        this.#arrived.delete(id);
        return file;
      }
      const received = descriptors().receive(this.#socket);
      if (received === null) return null;
      this.#arrived.set(received.id, received.file);
    }
  }

  #end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    // Files that are still on their way are closed with it.
    closeSync(this.#socket);
    for (const file of this.#arrived.values()) if (file !== null) closeSync(file);
    if (this.#child.connected) this.#child.disconnect();
    this.#child.kill('SIGKILL');
    for (const { reject } of [...this.#asked.values(), ...this.#soon, ...this.#later]) reject(new OpenerEndedError());
    this.#asked.clear();
    this.#soon.length = 0;
    this.#later.length = 0;
  }
}
