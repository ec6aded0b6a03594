import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import {
  FileChangedError,
  FileError,
  FileExistsError,
  FileNotFoundError,
  inLanes,
  range,
  readFully,
  reasonOf,
} from '@shardtool/base';
import { type Answer, exchange, type HttpRequest } from '../http/exchange.js';
import { Hedging } from '../http/hedge.js';
import { openRemote, type RemoteFile, throwRefused } from '../http/http-source.js';
import { gaveUp } from '../http/http-storage.js';
import { withRetries } from '../http/retry.js';
import { ListPages } from '../list-pages.js';
import type { Content, Entry, Expected, PutOptions, Source, Storage, StorageOptions } from '../storage.js';
import { type ListPage, parseListPage, textOf } from './list.js';
import { type ListAsk, type Lists, listSideBySide, pagesOf } from './list-side-by-side.js';
import { type BucketPlace, bucketPlace, urlOf } from './place.js';
import { Signing } from './sign.js';

/** Longer files are uploaded in parts of this size. S3 accepts at most 10,000 parts of at least 5 MiB. */
const PART_BYTES = 16 << 20;
const MOST_PARTS = 10_000;
const PARTS_AT_ONCE = 4;

/** Opens a prefix of a bucket of S3, or of a server that is compatible with S3. */
export function openS3(location: string, options: StorageOptions): Storage {
  return new S3Storage(bucketPlace(location, options, process.env));
}

interface Ask {
  readonly method: HttpRequest['method'];
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly doing: 'read' | 'listed' | 'written' | 'removed';
  readonly signal?: AbortSignal | undefined;
  /** Statuses other than 2xx that are not an error. */
  readonly fine?: readonly number[];
}

/** Throws {@link TransientError} if the text of an answer is not complete. */
type CheckText = (text: string) => void;

class S3Storage implements Storage {
  readonly location: string;
  readonly costs = { gapBytes: 1 << 20, maxReadBytes: 8 << 20, parallel: 128 };
  readonly counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #place: BucketPlace;
  readonly #signing: Signing;
  readonly #hedging = new Hedging();
  #region: string;

  constructor(place: BucketPlace) {
    this.#place = place;
    this.#region = place.region;
    this.#signing = new Signing(place);
    this.location = `${place.scheme}://${place.bucket}/${place.prefix}`.replace(/\/$/, '');
  }

  async entry(name: string, signal?: AbortSignal): Promise<Entry | null> {
    try {
      const { headers } = await this.#ask({ method: 'HEAD', key: this.#key(name), doing: 'read', signal });
      const modifiedMs = Date.parse(headers['last-modified'] ?? '');
      return {
        name,
        size: Number(headers['content-length']),
        version: headers.etag ?? '',
        ...(!Number.isNaN(modifiedMs) && { modifiedMs }),
      };
    } catch (error) {
      if (error instanceof FileNotFoundError) return null;
      throw error;
    }
  }

  async *list(
    prefix = '',
    { deep = false, signal }: { readonly deep?: boolean; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Entry> {
    const ask = (asked: ListAsk): Promise<ListPage> => this.#listPage(this.#place.prefix + prefix, asked, signal);
    const lists = { ask, pages: () => new ListPages(this.location) };
    const entries = deep ? listSideBySide(lists) : listFolder(lists);
    for await (const { name, ...entry } of entries) {
      // Consoles create an empty object for a new folder.
      if (!`${prefix}${name}`.endsWith('/') && prefix + name !== '') yield { name: prefix + name, ...entry };
    }
  }

  /** Lists one page. Names are relative to `prefix`, with which their keys begin. */
  async #listPage(prefix: string, asked: ListAsk, signal: AbortSignal | undefined): Promise<ListPage> {
    const { folder = '', startAfter, byFolder = false, token } = asked;
    const query = {
      'list-type': '2',
      'encoding-type': 'url',
      prefix: prefix + folder,
      ...(byFolder && { delimiter: '/' }),
      ...(startAfter !== undefined && { 'start-after': prefix + startAfter }),
      ...(token !== undefined && { 'continuation-token': token }),
    };
    let page: ListPage | undefined;
    await this.#ask({ method: 'GET', key: '', query, doing: 'listed', signal }, (text) => {
      page = parseListPage(text, prefix);
    });
    return page!;
  }

  open(name: string, expected?: Expected): Promise<Source> {
    const key = this.#key(name);
    const file: RemoteFile = {
      location: this.#shown(key),
      counts: this.counts,
      hedging: this.#hedging,
      request: (method, headers) => this.#request(method, key, {}, headers),
      refused: (answer) => this.#refused(answer),
    };
    return openRemote(file, expected);
  }

  async put(name: string, content: Content, { ifAbsent = false, ifVersion, signal }: PutOptions = {}): Promise<void> {
    const key = this.#key(name);
    if (ifAbsent && (await this.entry(name, signal)) !== null) throw this.#exists(key);
    // A server that ignores the condition still refuses a change that happened before.
    if (ifVersion !== undefined && (await this.entry(name, signal))?.version !== ifVersion) throw this.#changed(key);
    const headers: Record<string, string> = ifAbsent ? { 'if-none-match': '*' } : {};
    if (ifVersion !== undefined) headers['if-match'] = ifVersion;
    const refused = () => (ifAbsent ? this.#exists(key) : this.#changed(key));
    const bytes = content instanceof Uint8Array ? content.length : await sizeOf(content.file);
    if (bytes > PART_BYTES) return this.#putParts(key, content, bytes, { headers, refused }, signal);
    const body = content instanceof Uint8Array ? content : await readPart(content, 0, bytes);
    const { status } = await this.#ask({
      method: 'PUT',
      key,
      headers,
      body,
      doing: 'written',
      signal,
      // Without the object, a condition on its version is answered by 404.
      fine: ifVersion === undefined ? (ifAbsent ? [412] : []) : [404, 412],
    });
    if (status >= 400) throw refused();
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#ask({ method: 'DELETE', key: this.#key(name), doing: 'removed', signal, fine: [404] });
  }

  /** Uploads a file in parts. No part of it is visible before the upload is completed. */
  async #putParts(
    key: string,
    content: Content,
    bytes: number,
    { headers, refused }: { readonly headers: Record<string, string>; readonly refused: () => FileError },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const begun = await this.#ask({ method: 'POST', key, query: { uploads: '' }, doing: 'written', signal });
    const uploadId = textOf(begun.text, 'UploadId');
    if (uploadId === undefined)
      throw new FileError(
        { path: this.#shown(key) },
        `${this.#shown(key)} cannot be written: the server did not start a multipart upload.`,
      );
    const partBytes = Math.max(PART_BYTES, Math.ceil(bytes / MOST_PARTS));
    const parts = range(Math.ceil(bytes / partBytes));
    try {
      const etags = await inLanes(parts, PARTS_AT_ONCE, async (i) => {
        signal?.throwIfAborted();
        const body = await readPart(content, i * partBytes, Math.min(bytes, (i + 1) * partBytes));
        const query = { partNumber: String(i + 1), uploadId };
        const { headers: answered } = await this.#ask({ method: 'PUT', key, query, body, doing: 'written', signal });
        return answered.etag ?? '';
      });
      const list = etags.map(
        (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag.replaceAll('&', '&amp;')}</ETag></Part>`,
      );
      const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`);
      const done = await this.#ask({
        method: 'POST',
        key,
        query: { uploadId },
        headers,
        body,
        doing: 'written',
        signal,
        fine: [404, 412],
      });
      if (done.status === 412) throw refused();
      // If an answer was lost, the next try finds no upload. And an answer with status 200 may be an error.
      const isThere = done.status === 200 && textOf(done.text, 'ETag') !== undefined;
      if (!isThere && (await sizeAt(this, key, this.#place.prefix)) !== bytes) {
        throw new FileError(
          { path: this.#shown(key) },
          `${this.#shown(key)} cannot be written: the upload was not completed (${textOf(done.text, 'Code') ?? done.status}). Try again.`,
        );
      }
    } catch (error) {
      await this.#ask({ method: 'DELETE', key, query: { uploadId }, doing: 'removed', fine: [404] }).catch(
        () => undefined,
      );
      throw error;
    }
  }

  /** Repeats a request until the text of its answer passes the check. */
  async #ask(
    { method, key, query = {}, headers = {}, body, doing, signal, fine = [] }: Ask,
    check: CheckText = () => undefined,
  ): Promise<Answer> {
    const location = key === '' ? this.location : this.#shown(key);
    return withRetries(
      async (tries) => {
        const request = await this.#request(method, key, query, headers, body);
        const answer = await exchange(request, { counts: this.counts, fresh: tries > 1, signal });
        if ((answer.status >= 200 && answer.status < 300) || fine.includes(answer.status)) {
          check(answer.text);
          return answer;
        }
        return throwRefused({ location, refused: (refused) => this.#refused(refused) }, answer, doing);
      },
      { location, counts: this.counts, signal, gaveUp: (reason, cause) => gaveUp(location, reason, cause) },
    );
  }

  #request(
    method: HttpRequest['method'],
    key: string,
    query: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>>,
    body?: Uint8Array,
  ): Promise<HttpRequest> {
    const url = urlOf(this.#place, this.#region, key);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // In the signed text, a space is %20.
    url.search = url.search.replaceAll('+', '%20');
    const sum = body === undefined || this.#signing.coversBody(url) ? {} : { 'content-md5': md5Of(body) };
    return this.#signing.sign({ method, url, headers: { ...headers, ...sum }, body }, this.#region);
  }

  /** Returns true if the next request will differ: another region, renewed credentials or a corrected clock. Else a reason to show. */
  async #refused({ request, status, headers, text }: Answer): Promise<boolean | string> {
    const code = textOf(text, 'Code') ?? '';
    const region = (headers['x-amz-bucket-region'] as string | undefined) ?? textOf(text, 'Region');
    if ((status === 301 || status === 307 || status === 400) && region !== undefined) {
      const isNews = region !== this.#region;
      this.#region = region;
      // Other requests may have been sent before the answer to the first one named the region.
      if (isNews || this.#wasForOtherRegion(request)) return true;
    }
    if (code === 'RequestTimeTooSkewed') {
      this.#signing.correctClock(headers.date);
      return true;
    }
    if (/Expired/.test(code) || code === 'InvalidToken')
      return (await this.#signing.renew(request)) || 'the credentials have expired';
    // Another process is writing the object.
    if (code === 'ConditionalRequestConflict' || code === 'OperationAborted') return true;
    if (code === 'BadDigest' || code === 'SlowDown' || code === 'InternalError' || code === 'RequestTimeout')
      return true;
    return /^[A-Za-z]{1,60}$/.test(code) ? code : '';
  }

  #wasForOtherRegion({ url, headers }: HttpRequest): boolean {
    const { authorization } = headers;
    if (authorization !== undefined) return !authorization.includes(`/${this.#region}/s3/`);
    return url.host !== urlOf(this.#place, this.#region).host;
  }

  #key(name: string): string {
    return this.#place.prefix + name;
  }

  #shown(key: string): string {
    return `${this.#place.scheme}://${this.#place.bucket}/${key}`;
  }

  #changed(key: string): FileChangedError {
    const message = `${this.#shown(key)} was changed by another process in the meantime; run the same command again.`;
    return new FileChangedError({ path: this.#shown(key) }, message);
  }

  #exists(key: string): FileExistsError {
    return new FileExistsError({ path: this.#shown(key) }, `${this.#shown(key)} already exists.`);
  }
}

/** Checksum that the server compares with the bytes that it receives. */
function md5Of(body: Uint8Array): string {
  return createHash('md5').update(body).digest('base64');
}

/** The files of one folder. */
async function* listFolder({ ask, pages }: Lists): AsyncGenerator<Entry> {
  for await (const page of pagesOf({ byFolder: true }, ask, pages())) yield* page.entries;
}

async function sizeAt(storage: Storage, key: string, prefix: string): Promise<number | undefined> {
  return (await storage.entry(key.slice(prefix.length)))?.size;
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (cause) {
    throw new FileError({ path: file }, `${file} cannot be read: ${reasonOf(cause)}.`, { cause });
  }
}

/** Bytes `from` to `to - 1`. */
async function readPart(content: Content, from: number, to: number): Promise<Uint8Array> {
  if (content instanceof Uint8Array) return content.subarray(from, to);
  const handle = await open(content.file, 'r');
  try {
    const bytes = new Uint8Array(to - from);
    if ((await readFully(handle, bytes, from)) === bytes.length) return bytes;
    throw new FileError({ path: content.file }, `${content.file} became shorter while it was read; try again.`);
  } finally {
    await handle.close();
  }
}
