import { TransientError } from '../retry.js';
import type { Head } from './head.js';

/** How the bytes of a body lie on the connection (RFC 9112, section 6). */
export interface Framing {
  /** So many bytes of the body come next, with nothing between them. */
  readonly run: number;
  /** Whether the body has ended. */
  readonly isWhole: boolean;
  /** So many bytes of the run have come. */
  passed(bytes: number): void;
  /** Takes what stands between two runs: returns how many of these bytes do. */
  skip(bytes: Uint8Array): number;
  /** The connection was closed: whether the body has ended by that. */
  close(): boolean;
}

/** How the body behind this head lies. Throws {@link TransientError} where that cannot be told. */
export function framingOf({ status, headers }: Head): Framing {
  if (status === 204 || status === 304) return new Counted(0);
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding !== undefined) {
    // Of both, a length is not to be believed: somebody in between may read another answer than this side does.
    if (encoding.toLowerCase() !== 'chunked' || length !== undefined) {
      throw new TransientError('the length of the answer cannot be told');
    }
    return new Chunked();
  }
  if (length === undefined) return new UntilClosed();
  if (!/^\d{1,15}$/.test(length)) throw new TransientError('the length of the answer is no number');
  return new Counted(Number(length));
}

/** As many bytes as the head says. */
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

/** All that comes until the connection is closed. */
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

/** Chunks with their sizes in front, and lines behind the last that nobody needs (RFC 9112, section 7.1). */
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
      if (line !== '') throw new TransientError('a chunk of the answer is longer than it says');
      this.#expects = 'size';
    } else {
      const size = SIZE.exec(line);
      if (size === null) throw new TransientError('a chunk of the answer has no size');
      this.run = Number.parseInt(size[1]!, 16);
      if (this.run === 0) this.#expects = 'trailer';
    }
  }
}
