import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** What the server does instead of responding; `lost`: it executes the request, but the response is lost. */
export type BucketFault = 'reset' | 'lost' | { readonly status: number; readonly code?: string };

/** A request as recorded for tests. */
export interface BucketAsk {
  readonly method: string;
  /** The key within the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
}

interface Stored {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modifiedMs: number;
}

/**
 * Buckets in memory that implement the needed part of S3: paginated lists, conditions, multipart uploads (Amazon S3
 * API Reference). Signatures are not checked. A test can inject faults.
 */
export interface BucketServer {
  readonly endpoint: string;
  /** By `bucket/key`. */
  readonly objects: Map<string, Stored>;
  /** Multipart uploads that were started, and neither completed nor aborted. */
  readonly uploads: Map<string, Map<number, Stored>>;
  readonly asked: BucketAsk[];
  /** Maximum number of concurrent requests so far. */
  most: number;
  pageSize: number;
  latencyMs: number;
  fault: (ask: BucketAsk) => BucketFault | undefined;
  /** Changes a list before it is sent; a changed list has no length, and ends with the connection. */
  editList: (xml: string, ask: BucketAsk) => string;
  put(name: string, bytes: Uint8Array | string, modifiedMs?: number): void;
  /** Names in a bucket, sorted. */
  names(bucket: string): string[];
  stop(): Promise<void>;
}

/**
 * Starts {@link defaultBucketServer} for the tests of a file, and stops it after them. It has no objects and no faults when a test
 * begins.
 */
export function useBucketServer(take: (server: BucketServer) => void): void {
  let server: BucketServer;
  beforeAll(async () => {
    server = await defaultBucketServer();
    take(server);
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    server.objects.clear();
    server.fault = () => undefined;
  });
}

/** A server that is used, with credentials, if no other endpoint is set: until it is stopped. */
export async function defaultBucketServer(): Promise<BucketServer> {
  const server = await bucketServer();
  const variables = {
    AWS_ACCESS_KEY_ID: 'someone',
    AWS_SECRET_ACCESS_KEY: 'very-secret',
    AWS_ENDPOINT_URL: server.endpoint,
  };
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  const { stop } = server;
  server.stop = async () => {
    // The object is kept: other test files of this process change it, too.
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    await stop();
  };
  return server;
}

export async function bucketServer(): Promise<BucketServer> {
  let underWay = 0;
  const self: BucketServer = {
    endpoint: '',
    objects: new Map(),
    uploads: new Map(),
    asked: [],
    most: 0,
    pageSize: 1000,
    latencyMs: 0,
    fault: () => undefined,
    editList: (xml) => xml,
    put(name, content, modifiedMs = Date.now()) {
      const bytes = Buffer.from(content);
      self.objects.set(name, stored(bytes, md5Of(bytes), modifiedMs));
    },
    names: (bucket) =>
      [...self.objects.keys()]
        .filter((name) => name.startsWith(`${bucket}/`))
        .map((name) => Buffer.from(name.slice(bucket.length + 1)))
        .sort(Buffer.compare)
        .map(String),
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };

  const server = http.createServer(async (request, response) => {
    const { method = 'GET', headers } = request;
    const url = new URL(request.url!, 'http://host');
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/');
    const ask = { method, key: rest.join('/'), query: url.searchParams, headers };
    self.asked.push(ask);
    self.most = Math.max(self.most, ++underWay);
    response.on('close', () => underWay--);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (self.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, self.latencyMs));
    const fault = self.fault(ask);
    if (fault === 'reset') return void request.socket.resetAndDestroy();
    if (typeof fault === 'object') return answer(fault.status, errorXml(fault.code ?? 'Refused'));
    const [status, body, more] = act(`${bucket}/${ask.key}`, bucket!, ask, Buffer.concat(pieces));
    const edited = typeof body === 'string' && ask.query.has('list-type') ? self.editList(body, ask) : body;
    if (edited !== body) return void response.writeHead(200, { connection: 'close' }).end(edited);
    if (fault === 'lost') return void request.socket.resetAndDestroy();
    answer(status, body, more);

    function answer(status: number, body: string | Buffer = '', more: http.OutgoingHttpHeaders = {}): void {
      response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...more });
      response.end(method === 'HEAD' ? undefined : body);
    }
  });

  type Answered = [status: number, body?: string | Buffer, headers?: http.OutgoingHttpHeaders];

  function act(name: string, bucket: string, { method, key, query, headers }: BucketAsk, body: Buffer): Answered {
    if (method === 'GET' && key === '') return [200, list(bucket, query)];
    if (method === 'GET' || method === 'HEAD') return get(name, method, headers);
    const md5 = md5Of(body);
    const said = headers['content-md5'];
    if (said !== undefined && said !== md5.toString('base64')) return [400, errorXml('BadDigest')];
    const mustBeAbsent = headers['if-none-match'] === '*';
    const wanted = headers['if-match'];
    const isOther = wanted !== undefined && wanted !== self.objects.get(name)?.etag;
    const uploadId = query.get('uploadId');
    if (method === 'DELETE') {
      if (uploadId !== null) return [self.uploads.delete(uploadId) ? 204 : 404];
      self.objects.delete(name);
      return [204];
    }
    if (method === 'POST' && query.has('uploads')) {
      const id = randomUUID();
      self.uploads.set(id, new Map());
      return [200, `<R><UploadId>${id}</UploadId></R>`];
    }
    if (uploadId !== null) {
      const parts = self.uploads.get(uploadId);
      if (parts === undefined) return [404, errorXml('NoSuchUpload')];
      if (method === 'PUT') {
        const part = stored(body, md5);
        parts.set(Number(query.get('partNumber')), part);
        return [200, '', { etag: part.etag }];
      }
      if (isOther || (mustBeAbsent && self.objects.has(name))) return [412, errorXml('PreconditionFailed')];
      self.uploads.delete(uploadId);
      const inOrder = [...parts].sort(([a], [b]) => a - b).map(([, part]) => part);
      const whole = Buffer.concat(inOrder.map(({ bytes }) => bytes));
      // As in S3: the checksum of the checksums of the parts.
      const sum = md5Of(Buffer.from(inOrder.map(({ etag }) => etag.slice(1, -1)).join(''), 'hex'));
      self.objects.set(name, stored(whole, sum, Date.now(), `-${inOrder.length}`));
      return [200, `<R><ETag>${self.objects.get(name)!.etag}</ETag></R>`];
    }
    if (isOther || (mustBeAbsent && self.objects.has(name))) return [412, errorXml('PreconditionFailed')];
    self.objects.set(name, stored(body, md5));
    return [200, '', { etag: self.objects.get(name)!.etag }];
  }

  function get(name: string, method: string, headers: http.IncomingHttpHeaders): Answered {
    const stored = self.objects.get(name);
    if (stored === undefined) return [404, errorXml('NoSuchKey')];
    const { bytes, etag, modifiedMs } = stored;
    const facts = { etag, 'last-modified': new Date(modifiedMs).toUTCString() };
    if (method === 'HEAD') return [200, '', { ...facts, 'content-length': bytes.length }];
    const range = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '');
    if (range === null) return [200, bytes, facts];
    const from = range[1] === '' ? Math.max(0, bytes.length - Number(range[2])) : Number(range[1]);
    const to = range[1] === '' || range[2] === '' ? bytes.length : Math.min(bytes.length, Number(range[2]) + 1);
    if (from >= to) return [416, '', { ...facts, 'content-range': `bytes */${bytes.length}` }];
    return [206, bytes.subarray(from, to), { ...facts, 'content-range': `bytes ${from}-${to - 1}/${bytes.length}` }];
  }

  function list(bucket: string, query: URLSearchParams): string {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const afterBytes = Buffer.from(after);
    const isByFolder = query.get('delimiter') === '/';
    const items: string[] = [];
    let count = 0;
    let last = '';
    let isCut = false;
    const seen = new Set<string>();
    for (const key of self.names(bucket)) {
      const slash = key.indexOf('/', prefix.length);
      const folder = isByFolder && slash !== -1 ? key.slice(0, slash + 1) : null;
      if (!key.startsWith(prefix) || seen.has(folder ?? key)) continue;
      const isPast = Buffer.compare(Buffer.from(key), afterBytes) <= 0 || (folder !== null && folder === after);
      if (isPast) continue;
      if (count === self.pageSize) {
        isCut = true;
        break;
      }
      count++;
      last = folder ?? key;
      seen.add(last);
      const { bytes, etag, modifiedMs } = self.objects.get(`${bucket}/${key}`)!;
      items.push(
        folder !== null
          ? `<CommonPrefixes><Prefix>${encodeURIComponent(folder)}</Prefix></CommonPrefixes>`
          : `<Contents><Key>${encodeURIComponent(key)}</Key><Size>${bytes.length}</Size><ETag>${etag}</ETag>` +
              `<LastModified>${new Date(modifiedMs).toISOString()}</LastModified></Contents>`,
      );
    }
    const next = isCut ? `<NextContinuationToken>${last}</NextContinuationToken>` : '';
    const more = `<IsTruncated>${isCut}</IsTruncated>${next}`;
    return `<ListBucketResult><EncodingType>url</EncodingType>${items.join('')}${more}</ListBucketResult>`;
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  Object.assign(self, { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  return self;
}

function md5Of(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest();
}

/** `modifiedMs` in whole seconds, as in headers. */
function stored(bytes: Buffer, md5: Buffer, modifiedMs = Date.now(), ending = ''): Stored {
  return { bytes, etag: `"${md5.toString('hex')}${ending}"`, modifiedMs: Math.floor(modifiedMs / 1000) * 1000 };
}

function errorXml(code: string): string {
  return `<Error><Code>${code}</Code></Error>`;
}
