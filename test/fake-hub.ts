import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type FaultyServer, faultyServer } from './faulty-server.js';

/** A Hub with one repository, `me/cats`, whose commit contains the files of a folder. Tars are on another host. */
export interface FakeHub {
  readonly endpoint: string;
  readonly asked: { readonly method: string; readonly url: string; readonly token: string | undefined }[];
  /** The server of the tars. */
  readonly cdn: FaultyServer;
  /** Required token; null: public. */
  token: string | null;
  /** The commit of `main`. */
  commit: string;
  /** Changes the link to the next page of a list, and the body of a page. */
  editList: (link: string, body: string) => readonly [link: string, body: string];
  stop(): Promise<void>;
}

/** Number of names on a page of a list. */
const PAGE = 3;

export async function fakeHub(folder: string): Promise<FakeHub> {
  const cdn = await faultyServer(folder);
  const asked: { method: string; url: string; token: string | undefined }[] = [];
  const answer = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    const { method = '', headers } = request;
    const url = new URL(request.url!, hub.endpoint);
    const token = headers.authorization?.replace('Bearer ', '');
    asked.push({ method, url: request.url!, token });
    const refuse = (status: number, code: string) => response.writeHead(status, { 'x-error-code': code }).end();
    // A repository that was renamed.
    if (url.pathname.includes('/me/kittens/')) {
      response.writeHead(307, { location: request.url!.replace('/me/kittens/', '/me/cats/') }).end();
      return;
    }
    if (hub.token !== null && token !== hub.token) {
      refuse(401, 'RepoNotFound');
      return;
    }
    const [, revision] = /^\/api\/datasets\/me\/cats\/revision\/(.+)$/.exec(url.pathname) ?? [];
    if (revision !== undefined) {
      if (decodeURIComponent(revision) === 'main') response.end(JSON.stringify({ sha: hub.commit }));
      else if (decodeURIComponent(revision) === 'refs/pr/1') response.end(JSON.stringify({ sha: 'b'.repeat(40) }));
      else refuse(404, 'RevisionNotFound');
      return;
    }
    const [, , treeOf] = /^\/api\/datasets\/me\/cats\/tree\/(\w+)\/(.*)$/.exec(url.pathname) ?? [];
    if (treeOf !== undefined) {
      const from = Number(url.searchParams.get('cursor') ?? 0);
      const items = listed(decodeURIComponent(treeOf), url.searchParams.get('recursive') === 'true');
      url.searchParams.set('cursor', String(from + PAGE));
      const [link, body] = hub.editList(url.href, JSON.stringify(items.slice(from, from + PAGE)));
      if (items.length > from + PAGE) response.setHeader('link', `<${link}>; rel="next"`);
      response.setHeader('connection', 'close').end(body);
      return;
    }
    const [, commit, name] = /^\/datasets\/me\/cats\/resolve\/(\w+)\/(.*)$/.exec(url.pathname) ?? [];
    const file = path.join(folder, decodeURIComponent(name ?? 'none'));
    if (commit !== hub.commit && commit !== 'b'.repeat(40)) {
      refuse(404, 'RevisionNotFound');
      return;
    }
    if (!fs.existsSync(file)) {
      refuse(404, 'EntryNotFound');
      return;
    }
    if (name!.endsWith('.tar')) {
      const { size } = fs.statSync(file);
      const location = `${cdn.url}/${name}?Signature=very-secret`;
      response.writeHead(302, { location, 'x-linked-size': size, 'x-linked-etag': `"${name}"` }).end();
      return;
    }
    const bytes = fs.readFileSync(file);
    response.writeHead(200, { 'content-length': bytes.length, etag: `"${name}"` }).end(bytes);
  };
  const listed = (below: string, deep: boolean): object[] =>
    fs.readdirSync(path.join(folder, below), { recursive: deep, encoding: 'utf8' }).map((name) => {
      const at = path.posix.join(below, name);
      const found = fs.statSync(path.join(folder, at));
      const type = found.isFile() ? 'file' : 'directory';
      return { type, path: at, size: found.size, oid: at, ...(at.endsWith('.tar') && { lfs: { oid: `sha-${at}` } }) };
    });
  const server = http.createServer(answer);
  const hub: FakeHub = {
    endpoint: '',
    asked,
    cdn,
    token: null,
    commit: 'a'.repeat(40),
    editList: (link, body) => [link, body],
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await cdn.stop();
    },
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(hub, { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}
