import type net from 'node:net';
import { TransientError } from '../retry.js';
import { type Framing, framingOf } from './framing.js';
import { HEAD_BYTES, HEAD_END, type Head, parseHead } from './head.js';
import { BrokenError, type Reception } from './reception.js';
import { openSocket, type Receiver, type SocketOptions } from './socket.js';

/** If a server does not answer, or stops sending or receiving, for this time, the request is sent again. */
const SILENCE_MS = 10_000;
/** An idle connection is closed after this time, or 1 s before the server will close it. */
const IDLE_MS = 15_000;
/**
 * Size of the pieces in which a body is written. Each piece that the system accepts shows that the server still reads.
 */
const PIECE_BYTES = 64 << 10;

/** A request in the form in which it is written to a connection. */
export interface Question {
  readonly method: string;
  readonly head: string;
  readonly body: Uint8Array | undefined;
}

interface ConnectionOptions extends Omit<SocketOptions, 'receiver'> {
  /** Called when the connection has ended, whichever side ended it. */
  onEnd(): void;
}

/** A request whose answer has not come yet. */
interface Asked {
  readonly method: string;
  readonly reception: Reception;
  /** True if all of the request was written. */
  isSent: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * A connection of HTTP/1.1, for one question at a time. The system writes the body of an answer directly to its
 * destination in memory, in few calls: no copy, and no memory that has to be collected. See
 * {@link https://nodejs.org/docs/latest-v20.x/api/net.html#new-netsocketoptions | `onread`}.
 */
export class Connection implements Receiver {
  #socket!: net.Socket;
  readonly #scratch = Buffer.allocUnsafeSlow(HEAD_BYTES);
  /** Number of bytes of an incomplete head in the scratch memory. */
  #filled = 0;
  /** Time of the first byte of a head, in milliseconds; 0 before. */
  #headSince = 0;
  #asked: Asked | null = null;
  #head: Head | null = null;
  #framing: Framing | null = null;
  /** Memory that the next bytes are written to. */
  #into: Uint8Array = this.#scratch;
  #idleMs = IDLE_MS;

  private constructor() {}

  /** Rejects with {@link BrokenError}, FileError if a proxy refuses, or the reason of the signal. */
  static async open(url: URL, { onEnd, ...options }: ConnectionOptions): Promise<Connection> {
    const connection = new Connection();
    const socket = await openSocket(url, { ...options, receiver: connection });
    connection.#socket = socket;
    socket.on('timeout', () => connection.#onSilence());
    socket.on('error', (error) => connection.#end(new BrokenError(error, connection.#isUnanswered)));
    socket.on('close', () => {
      connection.#onClose();
      onEnd();
    });
    return connection;
  }

  /** True if another question may be asked. */
  get isIdle(): boolean {
    return this.#asked === null && !this.#socket.destroyed;
  }

  /**
   * Writes the question, and resolves when all of the answer has come. Rejects with the errors of `reception`, {@link BrokenError} and
   * {@link TransientError}; the connection is then closed.
   */
  ask({ method, head, body }: Question, reception: Reception, signal: AbortSignal | undefined): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed) return Promise.reject(new BrokenError(new Error('the connection was closed'), true));
    if (signal?.aborted) {
      socket.destroy();
      return Promise.reject(signal.reason);
    }
    const answered = new Promise<void>((resolve, reject) => {
      this.#asked = { method, reception, isSent: body === undefined, resolve, reject };
    });
    const onAbort = (): void => this.#end(signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.setTimeout(SILENCE_MS);
    socket.ref();
    socket.cork();
    socket.write(head, 'latin1');
    if (body !== undefined) this.#send(this.#asked!, body, 0);
    socket.uncork();
    return answered.finally(() => signal?.removeEventListener('abort', onAbort));
  }

  /** Writes a body piece by piece, as long as its question is open. */
  #send(asked: Asked, body: Uint8Array, from: number): void {
    if (this.#asked !== asked) return;
    const to = from + PIECE_BYTES;
    const isLast = to >= body.length;
    if (isLast) asked.isSent = true;
    this.#socket.write(body.subarray(from, to), isLast ? undefined : () => this.#send(asked, body, to));
  }

  get #isUnanswered(): boolean {
    return this.#head === null && this.#filled === 0;
  }

  /** Bytes of a body that come in a run without framing are written directly to their destination. */
  next(): Uint8Array {
    const run = this.#framing?.run ?? 0;
    const room = (run > 0 && this.#asked?.reception.room) || null;
    this.#into = room === null ? this.#scratch.subarray(this.#filled) : room.subarray(0, run);
    return this.#into;
  }

  received(bytes: number): void {
    try {
      const asked = this.#asked;
      if (asked === null) throw new TransientError('bytes came without a request');
      if (this.#into.buffer !== this.#scratch.buffer) {
        asked.reception.wrote(bytes);
        this.#framing!.passed(bytes);
      } else if (this.#framing !== null) this.#takeBody(this.#scratch.subarray(0, bytes));
      else this.#findHead(this.#filled + bytes);
      if (this.#framing?.isWhole) this.#complete();
    } catch (error) {
      this.#end(error);
    }
  }

  /** Looks for the end of the head. There are several heads if the server sends interim answers (1xx). */
  #findHead(filled: number): void {
    // The socket does not time out while single bytes arrive, so the time of a whole head is limited too.
    this.#headSince ||= performance.now();
    if (performance.now() - this.#headSince > SILENCE_MS) throw new TransientError('no answer within 10 seconds');
    let from = 0;
    for (;;) {
      const end = this.#scratch.subarray(0, filled).indexOf(HEAD_END, from);
      if (end < 0) {
        this.#scratch.copyWithin(0, from, filled);
        this.#filled = filled - from;
        if (this.#filled === HEAD_BYTES) throw new TransientError('the head of the answer has no end');
        return;
      }
      const head = parseHead(this.#scratch.toString('latin1', from, end));
      from = end + HEAD_END.length;
      if (head.status >= 200) {
        this.#filled = 0;
        this.#headSince = 0;
        this.#startBody(head, this.#scratch.subarray(from, filled));
        return;
      }
    }
  }

  #startBody(head: Head, rest: Uint8Array): void {
    const { method, reception } = this.#asked!;
    const framing = framingOf(head, method);
    reception.begin(head.status, head.headers);
    this.#head = head;
    this.#framing = framing;
    this.#takeBody(rest);
  }

  #takeBody(bytes: Uint8Array): void {
    const framing = this.#framing!;
    let at = 0;
    while (at < bytes.length) {
      if (framing.isWhole) throw new TransientError('the server sent more bytes than announced');
      const run = Math.min(framing.run, bytes.length - at);
      if (run > 0) {
        this.#asked!.reception.take(bytes.subarray(at, at + run));
        framing.passed(run);
        at += run;
      } else at += framing.skip(bytes.subarray(at));
    }
  }

  /** The answer is complete. The connection waits for another question if the server allows it and has read all of this one. */
  #complete(): void {
    const { resolve, isSent } = this.#asked!;
    const { isKept, headers } = this.#head!;
    this.#asked = null;
    this.#head = null;
    this.#framing = null;
    this.#filled = 0;
    const seconds = /timeout=(\d+)/.exec(String(headers['keep-alive'] ?? ''))?.[1];
    this.#idleMs = seconds === undefined ? IDLE_MS : Math.min(IDLE_MS, (Number(seconds) - 1) * 1000);
    if (isKept && isSent && this.#idleMs > 0) {
      this.#socket.setTimeout(this.#idleMs);
      this.#socket.unref();
    } else this.#socket.destroy();
    resolve();
  }

  #onSilence(): void {
    if (this.#asked === null) this.#socket.destroy();
    else this.#end(new TransientError(this.#head === null ? 'no answer within 10 seconds' : 'no byte for 10 seconds'));
  }

  /** After this returns, nothing more is written to the memory of the question. */
  #end(error: unknown): void {
    this.#socket.destroy();
    const asked = this.#asked;
    this.#asked = null;
    asked?.reject(error);
  }

  #onClose(): void {
    const asked = this.#asked;
    this.#asked = null;
    if (asked === null) return;
    if (this.#framing?.close()) asked.resolve();
    else asked.reject(new BrokenError(new Error('the connection was closed'), this.#isUnanswered));
  }
}
