import type { IncomingHttpHeaders } from 'node:http';
import type { StorageCounts } from '../../storage.js';
import { TransientError } from '../retry.js';

/** Returns memory for the body of an answer; null if the body is an error or other text. May throw. */
export type Place = (status: number, headers: IncomingHttpHeaders) => Uint8Array | null;

/** Limit of a text that is kept. */
const MOST_TEXT = 8 << 20;

/** Takes the answer to one request: its body goes to the memory that a {@link Place} returns, or is kept as text. */
export class Reception {
  status = 0;
  headers: IncomingHttpHeaders = {};
  /** Number of bytes of the body that were written to that memory. */
  received = 0;
  /** Number of bytes of the body. */
  bytes = 0;
  readonly #counts: StorageCounts;
  readonly #place: Place;
  #target: Uint8Array | null = null;
  #texts: Buffer[] = [];
  #textBytes = 0;

  constructor(counts: StorageCounts, place: Place = () => null) {
    this.#counts = counts;
    this.#place = place;
  }

  /** Called with the head of the answer. Throws the errors of {@link Place}. */
  begin(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
    this.#target = this.#place(status, headers);
  }

  /** Memory for the next bytes of the body; null if they have to be passed to {@link take}. */
  get room(): Uint8Array | null {
    if (this.#target === null || this.received === this.#target.length) return null;
    return this.#target.subarray(this.received);
  }

  /** Called when `bytes` bytes were written to the beginning of {@link room}. */
  wrote(bytes: number): void {
    this.#counts.bytes += bytes;
    this.bytes += bytes;
    this.received += bytes;
  }

  /** Takes the next bytes, from memory that may be reused. Throws {@link TransientError} if there are too many. */
  take(bytes: Uint8Array): void {
    if (this.#target === null) {
      this.#counts.bytes += bytes.length;
      this.bytes += bytes.length;
      if (this.#textBytes < MOST_TEXT) this.#texts.push(Buffer.from(bytes));
      this.#textBytes += bytes.length;
      return;
    }
    if (this.received + bytes.length > this.#target.length) {
      throw new TransientError(`more bytes came than were asked for${this.#compression()}`);
    }
    this.#target.set(bytes, this.received);
    this.wrote(bytes.length);
  }

  /** Called when the body has ended. Returns the text. Throws {@link TransientError} if bytes are missing. */
  end(): string {
    if (this.room !== null) {
      throw new TransientError(
        `the answer ends after ${this.received} of ${this.#target!.length} bytes${this.#compression()}`,
      );
    }
    if (this.#textBytes > 0 && this.status < 300 && this.#compression() !== '') {
      throw new TransientError(`the answer is not text${this.#compression()}`);
    }
    return Buffer.concat(this.#texts).toString();
  }

  /**
   * A clause for an error about the body, if the server says that it is compressed. Requests ask for no compression, but a
   * proxy may add it. Such an answer is right if it has the bytes of the file: servers describe stored files, such as a
   * .tar.gz, in the same way.
   */
  #compression(): string {
    const encoding = this.headers['content-encoding'] ?? 'identity';
    if (encoding === 'identity') return '';
    return `: the server compresses it (content-encoding ${encoding}), which must be turned off`;
  }
}

/** The connection failed. The cause is the error of the system or of TLS. */
export class BrokenError extends Error {
  override readonly cause: Error & { readonly code?: string };
  /** True if no byte of the answer had come. */
  readonly isUnanswered: boolean;

  constructor(cause: Error, isUnanswered = false) {
    super(cause.message);
    this.cause = cause;
    this.isUnanswered = isUnanswered;
  }
}
