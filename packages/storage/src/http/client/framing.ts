import { TransientError } from '../retry.js';
import type { Head } from './head.js';

/** Separates the bytes of a body from the framing on a connection (RFC 9112, section 6). */
export interface Framing {
  /** Number of bytes of the body that come next, with nothing between them. */
  readonly run: number;
  /** True if the body has ended. */
  readonly isWhole: boolean;
  /** Called when `bytes` bytes of the run have come. */
  passed(bytes: number): void;
  /** Parses the framing of the next run at the beginning of `bytes`, and returns the length of that framing. */
  skip(bytes: Uint8Array): number;
  /** Called when the connection was closed. Returns true if the body is whole. */
  close(): boolean;
}

/** Returns the framing of the body after this head. Throws {@link TransientError} if the head does not say how it is framed. */
export function framingOf({ status, headers }: Head, method: string): Framing {
  if (method === 'HEAD' || status === 204 || status === 304) return new Counted(0);
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding !== undefined) {
    // If an answer also has a length, it is rejected: a proxy and this client may disagree about where the body ends.
    if (encoding.toLowerCase() !== 'chunked' || length !== undefined) {
      throw new TransientError('the answer does not contain its length');
    }
    return new Chunked();
  }
  if (length === undefined) return new UntilClosed();
  if (!/^\d{1,15}$/.test(length)) throw new TransientError('the length of the answer is not a number');
  return new Counted(Number(length));
}

/** A body whose length is in the head. */
class Counted implements Framing {
  run: number;

  constructor(bytes: number) {
    this.run = bytes;
  }

  get isWhole(): boolean {
    return this.run === 0;
  }

  passed(bytes: number): void {
    this.run -= bytes;
  }

  skip(): number {
    return 0;
  }

  close(): boolean {
    return this.isWhole;
  }
}

/** A body that ends when the connection is closed. */
class UntilClosed implements Framing {
  readonly run = Number.POSITIVE_INFINITY;
  isWhole = false;

  passed(): void {}

  skip(): number {
    return 0;
  }

  close(): boolean {
    this.isWhole = true;
    return true;
  }
}

const NEWLINE = 10;
const MOST_LINE = 4096;
const SIZE = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i;

/** A body in chunks, each after its size, with trailing headers that are ignored (RFC 9112, section 7.1). */
class Chunked implements Framing {
  run = 0;
  isWhole = false;
  #expects: 'size' | 'end of chunk' | 'trailer' = 'size';
  #line = '';

  passed(bytes: number): void {
    this.run -= bytes;
    if (this.run === 0) this.#expects = 'end of chunk';
  }

  skip(bytes: Uint8Array): number {
    let taken = 0;
    while (taken < bytes.length && this.run === 0 && !this.isWhole) {
      const at = bytes.indexOf(NEWLINE, taken);
      const end = at < 0 ? bytes.length : at;
      this.#line += Buffer.from(bytes.buffer, bytes.byteOffset + taken, end - taken).toString('latin1');
      if (this.#line.length > MOST_LINE) throw new TransientError('a chunk of the answer has no size');
      taken = at < 0 ? bytes.length : at + 1;
      if (at >= 0) this.#endOfLine(this.#line.replace(/\r$/, ''));
    }
    return taken;
  }

  close(): boolean {
    return this.isWhole;
  }

  #endOfLine(line: string): void {
    this.#line = '';
    if (this.#expects === 'trailer') this.isWhole = line === '';
    else if (this.#expects === 'end of chunk') {
      if (line !== '') throw new TransientError('a chunk of the answer is longer than its size');
      this.#expects = 'size';
    } else {
      const size = SIZE.exec(line);
      if (size === null) throw new TransientError('a chunk of the answer has no size');
      this.run = Number.parseInt(size[1]!, 16);
      if (this.run === 0) this.#expects = 'trailer';
    }
  }
}
