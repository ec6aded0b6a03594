import type { IncomingHttpHeaders } from 'node:http';
import { FileChangedError, FileError, FileNotFoundError, RequestRejectedError } from '@shardtool/base';
import type { Expected, Source, StorageCounts } from '../storage.js';
import { compressedByServer, compressionOf } from './compression.js';
import { parseContentRange } from './content-range.js';
import { type Answer, exchange, type HttpRequest } from './exchange.js';
import { type Hedging, hedged } from './hedge.js';
import { retryAfterMs, TRANSIENT_STATUS, TransientError, withRetries } from './retry.js';

/** How a remote file is requested. */
export interface RemoteFile {
  /** The location in messages. */
  readonly location: string;
  readonly counts: StorageCounts;
  readonly hedging: Hedging;
  /** Commit that the file belongs to. The file cannot change then, and its ETag may differ between servers. */
  readonly commit?: string;
  /** Returns the request for the file with these headers, signed if necessary. */
  request(method: 'GET' | 'HEAD', headers: Readonly<Record<string, string>>): Promise<HttpRequest>;
  /** Called for an answer that refuses. Returns true if the request has changed and may be sent again, or a reason to show. */
  refused?(answer: Answer): Promise<boolean | string>;
}

/** Number of bytes from the start or end of a file that come with its size: all of most indexes. */
const FIRST_READ_BYTES = 64 << 10;

interface Pinned {
  readonly size: number;
  readonly version: string | undefined;
}

/** Bytes of a file from an offset on. */
interface Known {
  readonly from: number;
  readonly bytes: Uint8Array;
}

/** One try of a request. */
interface Attempt {
  /** Whether to use a new connection, which is not reused afterwards. */
  readonly fresh: boolean;
  /** The error for an answer that ignores the range. The first is tried again, because a proxy may have caused it. */
  rangeIgnored(): Error;
}

/** The version of a file: its ETag, or else its length and time; undefined if the server sends neither. */
export function versionOf(headers: IncomingHttpHeaders, size: number): string | undefined {
  const { etag, 'last-modified': modified } = headers;
  return etag ?? (modified === undefined ? undefined : `${size}-${modified}`);
}

/** Opens a file. If its size is expected, no request is sent until it is read. */
export async function openRemote(file: RemoteFile, expected: Expected = {}): Promise<Source> {
  const source = new RemoteSource(file, expected);
  if (expected.size === undefined) await source.look(expected.first ?? 'start');
  return source;
}

/** A file that is read by HTTP. The first answer pins its version: a later answer of another version is an error. */
class RemoteSource implements Source {
  readonly location: string;
  readonly #file: RemoteFile;
  readonly #expected: Expected;
  #pinned: Pinned | null = null;
  #compression: string | undefined;
  /** Bytes that came with the size. */
  #known: Known | null = null;

  constructor(file: RemoteFile, expected: Expected) {
    this.location = file.location;
    this.#file = file;
    this.#expected = expected;
  }

  get version(): string | undefined {
    return this.#file.commit ?? this.#pinned?.version;
  }

  get compression(): string | undefined {
    return this.#compression;
  }

  get size(): number {
    return this.#pinned?.size ?? this.#expected.size!;
  }

  /** Reads one end of the file, with its size and version. */
  async look(first: 'start' | 'end'): Promise<void> {
    const { firstBytes = FIRST_READ_BYTES } = this.#expected;
    this.#known = await this.#hedged(firstBytes, undefined, (signal) => this.#lookAt(first, firstBytes, signal));
  }

  async #lookAt(first: 'start' | 'end', firstBytes: number, signal: AbortSignal | undefined): Promise<Known | null> {
    const range = first === 'start' ? `bytes=0-${firstBytes - 1}` : `bytes=-${firstBytes}`;
    let known: Known | null = null;
    let isTooShort = false;
    await this.#retrying(0, signal, async (attempt) => {
      const answer = await this.#ask(range, { ...attempt, signal }, (status, headers) => {
        if (status !== 200 && status !== 206) return null;
        let found = parseContentRange(headers['content-range']);
        const length = Number(headers['content-length'] ?? Number.NaN);
        if (found === null) {
          // All of the file, which is accepted if it is not longer than the range.
          if (status === 206 || !(length <= firstBytes)) throw attempt.rangeIgnored();
          found = { from: 0, to: length, size: length };
        }
        this.#pin(headers, found.size);
        if (found.to - found.from > firstBytes) throw new TransientError('the answer is of another range');
        known = { from: found.from, bytes: new Uint8Array(found.to - found.from) };
        return known.bytes;
      });
      isTooShort = answer.status === 416;
      if (!isTooShort) return this.#check(answer);
      if (first === 'end') return;
      if (!/^bytes \*\/0$|^$/.test(answer.headers['content-range'] ?? ''))
        throw new TransientError('the server answers 416 for a range that is in the file');
      this.#pin(answer.headers, 0);
    });
    // Some servers refuse an end that is longer than the file.
    return isTooShort && first === 'end' ? this.#lookAt('start', firstBytes, signal) : known;
  }

  async readAt(offset: number, target: Uint8Array, signal?: AbortSignal): Promise<number> {
    const length = Math.min(target.length, this.size - offset);
    if (length <= 0) return 0;
    const known = this.#known;
    if (known !== null && offset >= known.from && offset + length <= known.from + known.bytes.length) {
      target.set(known.bytes.subarray(offset - known.from, offset - known.from + length));
      return length;
    }
    const into = length === target.length ? target : target.subarray(0, length);
    const read = await this.#hedged(length, signal, async (stopped, isFirst) => {
      const place = isFirst ? into : new Uint8Array(length);
      await this.#read(offset, place, stopped);
      return place;
    });
    if (read !== into) into.set(read);
    return length;
  }

  async close(): Promise<void> {
    this.#known = null;
  }

  #hedged<Read>(
    bytes: number,
    signal: AbortSignal | undefined,
    read: (signal: AbortSignal | undefined, isFirst: boolean) => Promise<Read>,
  ): Promise<Read> {
    const { hedging, counts } = this.#file;
    return hedged(hedging, bytes, { signal, onHedge: () => counts.hedges++ }, read);
  }

  async #read(offset: number, target: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const range = `bytes=${offset}-${offset + target.length - 1}`;
    await this.#retrying(offset, signal, async (attempt) => {
      const answer = await this.#ask(range, { ...attempt, signal }, (status, headers) => {
        if (status !== 200 && status !== 206) return null;
        const found = parseContentRange(headers['content-range']);
        if (found === null) {
          const isWhole = status === 200 && offset === 0 && Number(headers['content-length']) === target.length;
          if (!isWhole) throw attempt.rangeIgnored();
          this.#pin(headers, target.length);
          return target;
        }
        this.#pin(headers, found.size);
        if (found.from !== offset || found.to !== offset + target.length) {
          throw new TransientError(
            `bytes ${found.from} to ${found.to} came instead of ${offset} to ${offset + target.length}`,
          );
        }
        return target;
      });
      if (answer.status === 416) throw this.#changed('it has become shorter');
      await this.#check(answer);
    });
  }

  async #ask(
    range: string,
    { fresh, signal }: { readonly fresh: boolean; readonly signal?: AbortSignal | undefined },
    place: (status: number, headers: IncomingHttpHeaders) => Uint8Array | null,
  ): Promise<Answer> {
    const { counts } = this.#file;
    const condition = this.#condition();
    const request = await this.#file.request('GET', { range, 'accept-encoding': 'identity', ...condition });
    const placed = (status: number, headers: IncomingHttpHeaders) => {
      this.#compression = compressionOf(headers);
      return place(status, headers);
    };
    return exchange(request, { counts, fresh, signal, place: placed });
  }

  #condition(): Record<string, string> {
    if (this.#file.commit !== undefined) return {};
    const etag = this.#pinned?.version ?? this.#expected.version;
    return etag !== undefined && /^"/.test(etag) ? { 'if-match': etag } : {};
  }

  /** Pins the version of the first answer, and compares the version of every later answer with it. */
  #pin(headers: IncomingHttpHeaders, size: number): void {
    const version = this.#file.commit !== undefined ? undefined : versionOf(headers, size);
    const { size: expectedSize, version: expected, modifiedMs } = this.#expected;
    if (expectedSize !== undefined && size !== expectedSize) {
      throw this.#changed(`it has ${size} bytes, and the dataset says ${expectedSize}`);
    }
    const modified = headers['last-modified'];
    if (modifiedMs !== undefined && isOtherSecond(modified, modifiedMs))
      throw this.#changed(`its time of modification is now ${modified}`);
    const known = this.#pinned;
    if (known === null) {
      if (expected !== undefined && version !== undefined && version !== expected)
        throw this.#changed('it has been replaced since it was first read');
      this.#pinned = { size, version };
    } else if (known.size !== size || known.version !== version)
      throw this.#changed('it has been replaced since it was first read');
  }

  /** Throws if an answer does not have bytes. */
  async #check(answer: Answer): Promise<void> {
    const { status } = answer;
    if (status === 200 || status === 206) return;
    if (status === 412) throw this.#changed('it has been replaced since it was first read');
    await throwRefused(this.#file, answer, 'read');
  }

  #retrying(
    offset: number,
    signal: AbortSignal | undefined,
    attempt: (attempt: Attempt) => Promise<void>,
  ): Promise<void> {
    const { location, counts } = this.#file;
    let ignored = 0;
    const rangeIgnored = (): Error =>
      ignored++ === 0 ? new TransientError('the server ignores the range') : this.#ignoresRanges();
    return withRetries((tries) => attempt({ fresh: tries > 1, rangeIgnored }), {
      location,
      counts,
      signal,
      gaveUp: (reason, cause) =>
        new FileError(
          { path: location, offset },
          `${location} cannot be read at byte ${offset}: ${reason}. Try again when the server answers.`,
          { cause },
        ),
    });
  }

  #changed(how: string): FileChangedError {
    const path = this.location;
    return new FileChangedError({ path }, `${path} has changed: ${how}. Open the dataset again, or restore the file.`);
  }

  #ignoresRanges(): FileError {
    const path = this.location;
    if (this.#compression !== undefined) return compressedByServer(path, this.#compression);
    return new FileError(
      { path },
      `${path} cannot be read in parts: its server ignores range requests. Use a server that supports them, or copy the file to this machine first.`,
    );
  }
}

/** Returns true if a file was modified in another second than expected. False without `Last-Modified`, which has whole seconds. */
function isOtherSecond(modified: string | undefined, expectedMs: number): boolean {
  const found = Date.parse(modified ?? '');
  return !Number.isNaN(found) && found !== Math.floor(expectedMs / 1000) * 1000;
}

const WHY: Readonly<Record<number, string>> = {
  400: 'the server did not understand the request',
  401: 'the server asks for credentials, or does not accept these',
  403: 'access is denied: check the credentials, or read unsigned if it is public',
  404: 'there is no such file',
  405: 'the server does not allow it',
  409: 'it is being changed',
  412: 'it already exists, or has changed',
  501: 'the server does not support this',
};

/** Throws the error for an answer that refuses: {@link TransientError} if another try may succeed. */
export async function throwRefused(
  file: Pick<RemoteFile, 'location' | 'refused'>,
  answer: Answer,
  doing: 'read' | 'listed' | 'written' | 'removed',
): Promise<never> {
  const { status, headers } = answer;
  if (TRANSIENT_STATUS.has(status)) {
    throw new TransientError(`the server answers ${status}`, {
      retryAfterMs: retryAfterMs(headers['retry-after'] as string | undefined),
    });
  }
  const more = await file.refused?.(answer);
  if (status < 400 && !more) throw new TransientError(`the server answers ${status}`);
  if (more === true) throw new TransientError(`the server answers ${status}`, { retryAfterMs: 0 });
  const isBucket = more === 'NoSuchBucket';
  const why = isBucket
    ? 'there is no such bucket: check its name and the endpoint'
    : (WHY[status] ?? 'the server refuses');
  const path = file.location;
  const Kind = status === 404 && !isBucket ? RemoteFileNotFound : RequestRejectedError;
  throw new Kind(
    { path, status },
    `${path} cannot be ${doing}: ${why} (${status}${typeof more === 'string' && more !== '' ? `, ${more}` : ''}).`,
  );
}

/** A 404 is a missing file, whatever else the server says. */
class RemoteFileNotFound extends FileNotFoundError {
  constructor({ path }: { readonly path: string; readonly status: number }, message: string) {
    super({ path }, message);
  }
}
