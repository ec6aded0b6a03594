import { type ChildProcess, fork } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { OpenedFile } from '../../calls.js';
import { type Failed, revived } from '../../failed.js';
import { descriptors } from './descriptors.js';

/**
 * Number of files that the process opens in parallel. Further calls wait in this process, so that urgent ones can
 * overtake them.
 */
const SIDE_BY_SIDE = 64;
/**
 * Share of SIDE_BY_SIDE that is reserved for each dataset and for the next one that is opened. So up to six hanging
 * file systems do not block other datasets.
 */
const OWN = 8;
/** The output of scripts/bundle.mjs for opener-process.ts. */
const PROCESS = new URL('./opener-process.cjs', import.meta.url);
/**
 * Descriptor, in the process, of the socket that carries open files. It follows standard input, output, error and the
 * message channel.
 */
export const FILES_SOCKET = 4;

export interface OpenerRequest {
  readonly id: number;
  readonly kind: 'open' | 'whole';
  readonly path: string;
}

export type OpenerAnswer =
  | { readonly kind: 'ready' }
  /** The open file itself was sent through the socket before. */
  | { readonly kind: 'opened'; readonly id: number; readonly size: number }
  | { readonly kind: 'whole'; readonly id: number; readonly bytes: Uint8Array }
  | Failed;

/** The process ended or could not be started. The caller has to open files itself. */
export class OpenerEndedError extends Error {}

/** A user of the process, which is one dataset. */
export interface User {
  /** Number of its files that are being opened. */
  underWay: number;
}

/** A call that has no answer yet. */
export interface Call {
  readonly user: User;
  readonly kind: OpenerRequest['kind'];
  readonly path: string;
  /** True if the user has left. The file is closed as soon as it is open. */
  isDropped: boolean;
  resolve(value: OpenedFile | Uint8Array): void;
  reject(error: Error): void;
}

/** The child process that opens files for all its users. */
export class OpenerChild {
  readonly users = new Set<User>();
  hasEnded = false;
  readonly #child: ChildProcess;
  readonly #socket: number;
  /** Calls that were sent to the process, by id. */
  readonly #asked = new Map<number, Call>();
  /** Open files that have arrived before their answers, by id. */
  readonly #arrived = new Map<number, number | null>();
  readonly #soon: Call[] = [];
  readonly #later: Call[] = [];
  #isReady = false;
  #next = 0;

  /** Throws if the system cannot pass open files between processes. */
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

  /**
   * True if the process still opens files for users that have left. If their file system hangs, their calls occupy
   * positions that other users need.
   */
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

  /**
   * Removes the first call whose user has few calls in progress, or whose user leaves enough positions free for others.
   */
  #takeFrom(queue: Call[]): Call | undefined {
    const free = SIDE_BY_SIDE - this.#asked.size;
    const at = queue.findIndex(
      ({ isDropped, user }) => isDropped || user.underWay < OWN || free > this.#keptFrom(user),
    );
    return at < 0 ? undefined : queue.splice(at, 1)[0];
  }

  /** Number of free positions that are reserved for other users. */
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
    // The caller then opens the file itself and reports the reason.
    if (file === null) call.reject(new OpenerEndedError());
    else if (call.isDropped) closeSync(file);
    else call.resolve({ file, size });
  }

  /**
   * Returns the open file with this id, which has already arrived, possibly behind files whose answers come later.
   * Returns null if this process could not receive it.
   */
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
    // This also closes files that are still in the socket.
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
