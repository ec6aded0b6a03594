import type { IncomingHttpHeaders } from 'node:http';
import type { StorageCounts } from '../storage.js';
import { TransientError } from './retry.js';

/** Where the body of an answer goes; null: it is an error, or text. May throw. */
export type Place = (status: number, headers: IncomingHttpHeaders) => Uint8Array | null;

/** Of a text no more is kept. */
const MOST_TEXT = 8 << 20;

/** What comes of one question: the bytes of the answer go to the place that is found for them, or are kept as text. */
export class Reception {
  status = 0;
  headers: IncomingHttpHeaders = {};
  /** Bytes that went to the place. */
  received = 0;
  /** Bytes of the body, wherever they went. */
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

  /** The answer begins. Throws what finding a place throws. */
  begin(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
    this.#target = this.#place(status, headers);
  }

  /** Where the next bytes of the body may be written without asking; null where they are to be given to {@link take}. */
  get room(): Uint8Array | null {
    if (this.#target === null || this.received === this.#target.length) return null;
    return this.#target.subarray(this.received);
  }

  /** So many bytes were written to the beginning of {@link room}. */
  wrote(bytes: number): void {
    this.#counts.bytes += bytes;
    this.bytes += bytes;
    this.received += bytes;
  }

  /** The next bytes, which may lie in memory that is used again. Throws {@link TransientError} where they are too many. */
  take(bytes: Uint8Array): void {
    if (this.#target === null) {
      this.#counts.bytes += bytes.length;
      this.bytes += bytes.length;
      if (this.#textBytes < MOST_TEXT) this.#texts.push(Buffer.from(bytes));
      this.#textBytes += bytes.length;
      return;
    }
    if (this.received + bytes.length > this.#target.length) {
      throw new TransientError('more bytes came than were asked for');
    }
    this.#target.set(bytes, this.received);
    this.wrote(bytes.length);
  }

  /** The body has ended: returns what was no place for. Throws {@link TransientError} where bytes lack. */
  end(): string {
    if (this.room !== null) {
      throw new TransientError(`the answer ends after ${this.received} of ${this.#target!.length} bytes`);
    }
    return Buffer.concat(this.#texts).toString();
  }
}

/** The connection failed: the system's error, TLS's or undici's is the cause. */
export class BrokenError extends Error {
  override readonly cause: Error & { readonly code?: string };
  /** Whether nothing of the answer had come. */
  readonly isUnanswered: boolean;

  constructor(cause: Error, isUnanswered = false) {
    super(cause.message);
    this.cause = cause;
    this.isUnanswered = isUnanswered;
  }
}
