import { FileError, FileNotFoundError } from '@shardtool/base';
import { joinLocation, shownLocation } from '../location/location.js';
import type { Entry, Expected, Source, Storage } from '../storage.js';
import { exchange } from './exchange.js';
import { Hedging } from './hedge.js';
import { openRemote, type RemoteFile, throwRefused, versionOf } from './http-source.js';
import { withRetries } from './retry.js';

/** Opens a folder on a web server. Plain HTTP has no lists, so the names have to be known. */
export function openHttp(location: string): Storage {
  return new HttpStorage(location);
}

class HttpStorage implements Storage {
  readonly location: string;
  readonly costs = { gapBytes: 512 << 10, maxReadBytes: 8 << 20, parallel: 64 };
  readonly counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #folder: string;
  readonly #hedging = new Hedging();

  constructor(location: string) {
    this.location = shownLocation(location);
    this.#folder = location;
  }

  async entry(name: string, signal?: AbortSignal): Promise<Entry | null> {
    const file = this.#file(name);
    const request = await file.request('HEAD', { 'accept-encoding': 'identity' });
    try {
      return await withRetries(
        async (tries) => {
          const answer = await exchange(request, { counts: this.counts, fresh: tries > 1, signal });
          if (answer.status !== 200) await throwRefused(file, answer, 'read');
          const { 'last-modified': modified, 'content-length': length } = answer.headers;
          const size = Number(length);
          const modifiedMs = Date.parse(modified ?? '');
          return {
            name,
            size,
            version: versionOf(answer.headers, size) ?? String(size),
            modifiedMs: Number.isNaN(modifiedMs) ? undefined : modifiedMs,
          };
        },
        {
          location: file.location,
          counts: this.counts,
          signal,
          gaveUp: (reason, cause) => gaveUp(file.location, reason, cause),
        },
      );
    } catch (error) {
      if (error instanceof FileNotFoundError) return null;
      throw error;
    }
  }

  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *list(): AsyncGenerator<Entry> {
    const path = this.location;
    throw new FileError(
      { path },
      `${path} cannot be listed: HTTP has no listings. Name each shard, or give a folder that "shardtool pack" wrote.`,
    );
  }

  open(name: string, expected?: Expected): Promise<Source> {
    return openRemote(this.#file(name), expected);
  }

  async put(name: string): Promise<void> {
    throw readOnly(this.#file(name).location);
  }

  async remove(name: string): Promise<void> {
    throw readOnly(this.#file(name).location);
  }

  #file(name: string): RemoteFile {
    const url = new URL(name === '' ? this.#folder : joinLocation(this.#folder, encodePath(name)));
    const { username, password } = url;
    url.username = '';
    url.password = '';
    url.hash = '';
    const basic =
      username === ''
        ? null
        : `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
    return {
      location: shownLocation(url.href),
      counts: this.counts,
      hedging: this.#hedging,
      request: async (method, headers) => ({
        method,
        url,
        headers: basic === null ? headers : { ...headers, authorization: basic },
      }),
    };
  }
}

/** Escapes characters that a URL must not have. Escapes that are already there stay. */
function encodePath(name: string): string {
  return name.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/g, (char) => encodeURIComponent(char));
}

function readOnly(path: string): FileError {
  return new FileError(
    { path },
    `${path} cannot be written: http locations are read only. Write to a folder or to s3://.`,
  );
}

export function gaveUp(path: string, reason: string, cause: unknown): FileError {
  return new FileError({ path }, `${path} cannot be reached: ${reason}. Try again when the server answers.`, { cause });
}
