import { FileError, FileNotFoundError, LruCache } from '@shardtool/base';
import { type Answer, exchange, type HttpRequest } from '../http/exchange.js';
import { Hedging } from '../http/hedge.js';
import { openRemote, type RemoteFile, throwRefused } from '../http/http-source.js';
import { gaveUp } from '../http/http-storage.js';
import { TransientError, withRetries } from '../http/retry.js';
import { ListPages } from '../list-pages.js';
import type { Entry, Expected, Source, Storage } from '../storage.js';
import { type HubPlace, hubPlace } from './place.js';

/** Opens a folder of a dataset repository. All reads use the commit that was found first. */
export function openHub(location: string): Storage {
  return new HubStorage(hubPlace(location, process.env));
}

/** Time for which the address of a file's bytes is used; the hub's own limit is an hour. */
const PLACED_MS = 10 * 60_000;
const KEPT_PLACES = 4096;

/** Facts that the listing of a folder has for each name: https://huggingface.co/docs/hub/api. */
interface TreeItem {
  readonly type: string;
  readonly path: string;
  readonly oid: string;
  readonly size: number;
  readonly lfs?: { readonly oid: string };
}

interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  readonly isAnswer?: (answer: Answer) => boolean;
  /** True if the answer is JSON. */
  readonly isJson?: boolean;
}

class HubStorage implements Storage {
  readonly location: string;
  readonly costs = { gapBytes: 1 << 20, maxReadBytes: 8 << 20, parallel: 64 };
  readonly counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #place: HubPlace;
  readonly #hedging = new Hedging();
  #commit: Promise<string> | null = null;
  /** Addresses of the bytes by name. They are on another host, which does not receive the token. */
  readonly #placed = new LruCache<string, { readonly url: URL; readonly until: number }>(KEPT_PLACES);

  constructor(place: HubPlace) {
    this.#place = place;
    const { repo, revision, prefix } = place;
    const at = revision === 'main' ? '' : `@${encodeURIComponent(revision)}`;
    this.location = `hf://datasets/${repo}${at}/${prefix}`.replace(/\/$/, '');
  }

  async entry(name: string, signal?: AbortSignal): Promise<Entry | null> {
    try {
      // A redirect of the hub has the facts about the file in its headers, so it is not followed.
      const isAnswer = ({ headers }: Answer) => headers['x-linked-size'] !== undefined;
      const url = await this.#urlOf(name);
      const { headers } = await this.#ask(this.#shown(name), { method: 'HEAD', url }, 'read', { signal, isAnswer });
      const size = Number(headers['x-linked-size'] ?? headers['content-length']);
      return { name, size, version: String(headers['x-linked-etag'] ?? headers.etag ?? size) };
    } catch (error) {
      if (error instanceof FileNotFoundError) return null;
      throw error;
    }
  }

  async *list(
    prefix = '',
    { deep = false, signal }: { readonly deep?: boolean; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Entry> {
    const { endpoint, repo, prefix: folder } = this.#place;
    const below = (folder + prefix.slice(0, prefix.lastIndexOf('/') + 1)).replace(/\/$/, '');
    const first = new URL(`${endpoint}/api/datasets/${repo}/tree/${await this.#commitOf()}/${encodePath(below)}`);
    if (deep) first.searchParams.set('recursive', 'true');
    const pages = new ListPages(this.location);
    for (let url: URL | null = first; url !== null; ) {
      const { text, headers } = await this.#ask(this.location, { method: 'GET', url }, 'listed', {
        signal,
        isJson: true,
      });
      const items = this.#parsed<TreeItem[]>(text);
      if (!Array.isArray(items)) throw this.#strange();
      url = nextPage(headers.link, this.#place.endpoint);
      pages.take(items[0]?.path, url?.href ?? null);
      for (const { type, path, oid, size, lfs } of items) {
        const name = path.slice(folder.length);
        if (type === 'file' && name.startsWith(prefix)) yield { name, size, version: lfs?.oid ?? oid };
      }
    }
  }

  async open(name: string, expected?: Expected): Promise<Source> {
    const file: RemoteFile = {
      location: this.#shown(name),
      counts: this.counts,
      hedging: this.#hedging,
      commit: await this.#commitOf(),
      request: async (method, headers) => {
        const placed = this.#placed.get(name);
        if (placed !== undefined && placed.until > Date.now()) return { method, url: placed.url, headers };
        const url = await this.#urlOf(name);
        const onOtherHost = (to: URL) => this.#placed.set(name, { url: to, until: Date.now() + PLACED_MS });
        return { ...this.#signed({ method, url, headers }), onOtherHost };
      },
      refused: async (answer) => {
        const wasPlaced = answer.request.onOtherHost === undefined && this.#placed.has(name);
        this.#placed.delete(name);
        // The address that the hub has signed has expired, so the hub is asked again.
        return wasPlaced || this.#refused(answer);
      },
    };
    return openRemote(file, expected);
  }

  async put(name: string): Promise<void> {
    throw this.#readOnly(name);
  }

  async remove(name: string): Promise<void> {
    throw this.#readOnly(name);
  }

  /** Returns the current commit of the revision. Later commits of a branch do not change what is read. */
  #commitOf(): Promise<string> {
    this.#commit ??= this.#askCommit().catch((error: unknown) => {
      this.#commit = null;
      throw error;
    });
    return this.#commit;
  }

  async #askCommit(): Promise<string> {
    const { endpoint, repo, revision } = this.#place;
    const url = new URL(`${endpoint}/api/datasets/${repo}/revision/${encodeURIComponent(revision)}`);
    const { text } = await this.#ask(this.location, { method: 'GET', url }, 'read', { isJson: true }).catch(
      (cause: unknown) => {
        // The repository or revision is missing, not a file.
        if (!(cause instanceof FileNotFoundError)) throw cause;
        const path = this.location;
        const message = `${path} cannot be read: the hub has no dataset ${repo} with the revision ${revision}.`;
        throw new FileError({ path }, message, { cause });
      },
    );
    const { sha } = this.#parsed<{ sha?: string }>(text);
    if (sha !== undefined && /^[0-9a-f]{7,64}$/.test(sha)) return sha;
    throw this.#strange();
  }

  async #urlOf(name: string): Promise<URL> {
    const { endpoint, repo, prefix } = this.#place;
    return new URL(`${endpoint}/datasets/${repo}/resolve/${await this.#commitOf()}/${encodePath(prefix + name)}`);
  }

  #ask(
    location: string,
    { method, url }: Pick<HttpRequest, 'method' | 'url'>,
    doing: 'read' | 'listed',
    { signal, isAnswer, isJson = false }: AskOptions,
  ): Promise<Answer> {
    const request = this.#signed({ method, url, headers: { 'accept-encoding': 'identity' } });
    return withRetries(
      async (tries) => {
        const answer = await exchange(request, { counts: this.counts, fresh: tries > 1, signal, isAnswer });
        if (isJson && answer.status === 200 && isCutJson(answer.text))
          throw new TransientError('the answer ends early');
        if (answer.status === 200 || isAnswer?.(answer)) return answer;
        return throwRefused({ location, refused: (refused) => this.#refused(refused) }, answer, doing);
      },
      { location, counts: this.counts, signal, gaveUp: (reason, cause) => gaveUp(location, reason, cause) },
    );
  }

  #signed(request: HttpRequest): HttpRequest {
    const token = process.env.HF_TOKEN;
    if (!token) return { ...request, credentialsOnOwnHost: true };
    return {
      ...request,
      credentialsOnOwnHost: true,
      headers: { ...request.headers, authorization: `Bearer ${token}` },
    };
  }

  /** Reason that the hub gives for a refusal. */
  async #refused({ status, headers }: Answer): Promise<string> {
    const code = String(headers['x-error-code'] ?? '');
    const said = /^[A-Za-z]{1,60}$/.test(code) ? code : '';
    if (status !== 401 && status !== 403 && !/Gated|RepoNotFound/.test(said)) return said;
    const remedy = process.env.HF_TOKEN
      ? 'the token in HF_TOKEN may not read it'
      : 'if it is private or gated, set HF_TOKEN to a token that may read it';
    return said === '' ? remedy : `${said}: ${remedy}`;
  }

  #parsed<T>(text: string): T {
    try {
      return JSON.parse(text) as T;
    } catch {
      throw this.#strange();
    }
  }

  #strange(): FileError {
    const path = this.location;
    return new FileError({ path }, `${path} cannot be read: the server is not a Hugging Face Hub; check HF_ENDPOINT.`);
  }

  #readOnly(name: string): FileError {
    const path = this.#shown(name);
    return new FileError(
      { path },
      `${path} cannot be written: write to a folder, and upload the folder with the tool of the Hub.`,
    );
  }

  #shown(name: string): string {
    return name === '' ? this.location : `${this.location}/${name}`;
  }
}

/** Returns true if a text begins as JSON and is not complete: an answer without a length may have been cut. */
function isCutJson(text: string): boolean {
  if (!/^\s*([[{]|$)/.test(text)) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

/**
 * RFC 8288: `<https://...>; rel="next"`. The request goes to the configured endpoint, even if the link names another
 * host: a mirror passes on the links of the hub unchanged.
 */
function nextPage(link: string | string[] | undefined, endpoint: string): URL | null {
  const next = /<([^>]+)>;\s*rel="?next"?/.exec([link ?? []].flat().join())?.[1];
  if (next === undefined) return null;
  const to = new URL(next, endpoint);
  if (to.origin === new URL(endpoint).origin) return to;
  return new URL(`${endpoint}${to.pathname}${to.search}`);
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}
