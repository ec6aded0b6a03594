import net from 'node:net';
import tls from 'node:tls';
import { CONNECT_MS, connectTimeout, SILENCE_MS, trusted } from '../connecting.js';
import { BrokenError, type Reception } from '../reception.js';
import { TransientError } from '../retry.js';
import { type Framing, framingOf } from './framing.js';
import { type Head, parseHead } from './head.js';

/** A longer head is refused; what is no body goes into memory of this length. */
const HEAD_BYTES = 16 << 10;
const HEAD_END = Buffer.from('\r\n\r\n');
/** A connection that nothing is asked on is closed after so long, and a second before the server says that it will. */
const IDLE_MS = 15_000;

export interface ConnectionOptions {
  /** Of an earlier connection to this host over TLS: it is taken up again, for less work on both sides. */
  readonly session: Buffer | undefined;
  onSession(session: Buffer): void;
  /** Hears when the connection has ended, whoever ended it. */
  onEnd(): void;
}

/** A question, and what hears of the answer. */
interface Asked {
  readonly reception: Reception;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * One connection of HTTP/1.1, one question at a time. The system writes the body of an answer to the place that is found for
 * it, in as few calls as there are bytes: no copy, and no memory that is given up again. See
 * {@link https://nodejs.org/docs/latest-v20.x/api/net.html#new-netsocketoptions | `onread`}.
 */
export class Connection {
  readonly #socket: net.Socket;
  readonly #scratch = Buffer.allocUnsafeSlow(HEAD_BYTES);
  readonly #onEnd: () => void;
  #filled = 0;
  /** When the first byte of a head came, in milliseconds; 0 before. */
  #headBegan = 0;
  #asked: Asked | null = null;
  #head: Head | null = null;
  #framing: Framing | null = null;
  /** Where the bytes that come next are written. */
  #into: Uint8Array = this.#scratch;
  #idleMs = IDLE_MS;

  constructor({ protocol, hostname, port }: URL, { session, onSession, onEnd }: ConnectionOptions) {
    this.#onEnd = onEnd;
    const isSecure = protocol === 'https:';
    const host = hostname.replace(/^\[|\]$/g, '');
    const options = {
      host,
      port: Number(port) || (isSecure ? 443 : 80),
      onread: { buffer: () => this.#next(), callback: (bytes: number) => this.#read(bytes) },
    };
    if (isSecure) {
      const servername = net.isIP(host) === 0 ? { servername: host } : {};
      const secure = { ...servername, ...trusted(), ...(session && { session }), ALPNProtocols: ['http/1.1'] };
      this.#socket = tls.connect({ ...options, ...secure }).on('session', onSession);
    } else this.#socket = net.connect(options);
    const socket = this.#socket;
    socket.setNoDelay(true);
    const late = setTimeout(() => this.#end(new BrokenError(connectTimeout())), CONNECT_MS);
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      clearTimeout(late);
      socket.setTimeout(SILENCE_MS);
    });
    socket.on('timeout', () => this.#silent());
    socket.on('error', (error) => this.#end(new BrokenError(error, this.#isUnanswered)));
    socket.on('close', () => {
      clearTimeout(late);
      this.#closed();
    });
  }

  /** Whether another question may be asked. */
  get isIdle(): boolean {
    return this.#asked === null && !this.#socket.destroyed;
  }

  /**
   * Writes the question and resolves when all of the answer has come. Rejects with what `reception` throws, {@link BrokenError} and
   * {@link TransientError}; the connection is closed then.
   */
  ask(question: string, reception: Reception, signal: AbortSignal | undefined): Promise<void> {
    const answered = new Promise<void>((resolve, reject) => {
      this.#asked = { reception, resolve, reject };
    });
    const abort = (): void => this.#end(signal!.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (!this.#socket.connecting) this.#socket.setTimeout(SILENCE_MS);
    this.#socket.ref();
    this.#socket.write(question, 'latin1');
    return answered.finally(() => signal?.removeEventListener('abort', abort));
  }

  get #isUnanswered(): boolean {
    return this.#head === null && this.#filled === 0;
  }

  /** Where the next bytes go: into the place, as long as what comes is nothing but body. */
  #next(): Uint8Array {
    const run = this.#framing?.run ?? 0;
    const room = (run > 0 && this.#asked?.reception.room) || null;
    this.#into = room === null ? this.#scratch.subarray(this.#filled) : room.subarray(0, run);
    return this.#into;
  }

  /** So many bytes have come to where {@link #next} said. */
  #read(bytes: number): boolean {
    try {
      const asked = this.#asked;
      if (asked === null) throw new TransientError('bytes came that nobody asked for');
      if (this.#into.buffer !== this.#scratch.buffer) {
        asked.reception.wrote(bytes);
        this.#framing!.passed(bytes);
      } else if (this.#framing !== null) this.#body(this.#scratch.subarray(0, bytes));
      else this.#heads(this.#filled + bytes);
      if (this.#framing?.isWhole) this.#whole();
    } catch (error) {
      this.#end(error);
    }
    return true;
  }

  /** Looks for the end of the head in what has come so far: of heads, where the server says something before it answers. */
  #heads(filled: number): void {
    // Bytes that come one by one are no silence.
    this.#headBegan ||= performance.now();
    if (performance.now() - this.#headBegan > SILENCE_MS) throw new TransientError('no answer within 10 seconds');
    let begin = 0;
    for (;;) {
      const end = this.#scratch.subarray(0, filled).indexOf(HEAD_END, begin);
      if (end < 0) {
        this.#scratch.copyWithin(0, begin, filled);
        this.#filled = filled - begin;
        if (this.#filled === HEAD_BYTES) throw new TransientError('the head of the answer has no end');
        return;
      }
      const head = parseHead(this.#scratch.toString('latin1', begin, end));
      begin = end + HEAD_END.length;
      if (head.status >= 200) {
        this.#filled = 0;
        this.#headBegan = 0;
        this.#answer(head, this.#scratch.subarray(begin, filled));
        return;
      }
    }
  }

  #answer(head: Head, rest: Uint8Array): void {
    const framing = framingOf(head);
    this.#asked!.reception.begin(head.status, head.headers);
    this.#head = head;
    this.#framing = framing;
    this.#body(rest);
  }

  #body(bytes: Uint8Array): void {
    const framing = this.#framing!;
    let at = 0;
    while (at < bytes.length) {
      if (framing.isWhole) throw new TransientError('more bytes came than the answer has');
      const run = Math.min(framing.run, bytes.length - at);
      if (run > 0) {
        this.#asked!.reception.take(bytes.subarray(at, at + run));
        framing.passed(run);
        at += run;
      } else at += framing.skip(bytes.subarray(at));
    }
  }

  /** The answer is there: the connection waits for another question, if the server lets it. */
  #whole(): void {
    const { resolve } = this.#asked!;
    const { isKept, headers } = this.#head!;
    this.#asked = null;
    this.#head = null;
    this.#framing = null;
    this.#filled = 0;
    const seconds = /timeout=(\d+)/.exec(String(headers['keep-alive'] ?? ''))?.[1];
    this.#idleMs = seconds === undefined ? IDLE_MS : Math.min(IDLE_MS, (Number(seconds) - 1) * 1000);
    if (isKept && this.#idleMs > 0) {
      this.#socket.setTimeout(this.#idleMs);
      this.#socket.unref();
    } else this.#socket.destroy();
    resolve();
  }

  #silent(): void {
    if (this.#asked === null) this.#socket.destroy();
    else this.#end(new TransientError(this.#head === null ? 'no answer within 10 seconds' : 'no byte for 10 seconds'));
  }

  /** Nothing is written to the place any more when this has returned. */
  #end(error: unknown): void {
    this.#socket.destroy();
    const asked = this.#asked;
    this.#asked = null;
    asked?.reject(error);
  }

  #closed(): void {
    const asked = this.#asked;
    this.#asked = null;
    if (asked !== null) {
      if (this.#framing?.close()) asked.resolve();
      else asked.reject(new BrokenError(new Error('the connection was closed'), this.#isUnanswered));
    }
    this.#onEnd();
  }
}
