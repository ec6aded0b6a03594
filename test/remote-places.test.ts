import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { shardtool } from './cli-here.js';
import { shardtoolWith } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';

let root: string;
let server: FaultyServer;
let bucket: string;
let listed: string;
/** Proxies and certificates of the machine that runs this are ignored. */
for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']) {
  for (const variable of [name, name.toLowerCase()]) delete process.env[variable];
}
process.env.AWS_CA_BUNDLE = '';

beforeAll(async () => {
  const shards = await packedPhotos();
  root = path.dirname(shards);
  bucket = path.basename(root);
  server = await faultyServer(root);
  listed = (await shardtool('ls', shards)).stdout.replaceAll(shards, 'PLACE');
});
afterAll(() => server.stop());
beforeEach(() => {
  server.clear();
  server.fault = () => undefined;
});

const tlsFile = (name: string) => path.resolve('test/fixtures/tls', name);

interface Proxy {
  readonly url: string;
  /** Requests, and the passwords that they contained. */
  readonly asked: { readonly method: string; readonly target: string; readonly password: string | undefined }[];
  stop(): Promise<void>;
}

/** A proxy that forwards http and creates tunnels. With `password`, it rejects requests without it; with `tls`, it uses https. */
async function startProxy(password?: string, tls?: https.ServerOptions): Promise<Proxy> {
  const asked: { method: string; target: string; password: string | undefined }[] = [];
  const sockets = new Set<net.Socket>();
  const isAllowed = ({ method = '', url = '', headers }: http.IncomingMessage): boolean => {
    const given = headers['proxy-authorization'];
    const text = given === undefined ? undefined : Buffer.from(given.slice('Basic '.length), 'base64').toString();
    asked.push({ method, target: url, password: text });
    return password === undefined || text === password;
  };
  const proxy = tls === undefined ? http.createServer() : https.createServer(tls);
  proxy.on('request', (request, response) => {
    if (!isAllowed(request)) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const onward = http.request(request.url!, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  proxy.on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    if (!isAllowed(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const [, port] = request.url!.split(':');
    const onward = net.connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    for (const one of [socket, onward]) one.on('error', () => one.destroy());
  });
  proxy.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    asked,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

async function lsAt(location: string, env: NodeJS.ProcessEnv = {}, ...flags: string[]) {
  const outcome = await shardtoolWith(env, 'ls', location, ...flags);
  return { ...outcome, listed: outcome.stdout.replaceAll(location, 'PLACE') };
}

test('HTTP requests use HTTP_PROXY, except for hosts of NO_PROXY', async () => {
  const proxy = await startProxy();
  const location = `${server.url}/shards`;
  const env = { HTTP_PROXY: `http://${proxy.url}` };
  expect(await lsAt(location, env)).toMatchObject({ code: 0, listed });
  expect(proxy.asked).toContainEqual({ method: 'GET', target: `${location}/dataset.json`, password: undefined });
  proxy.asked.length = 0;
  expect(await lsAt(location, { ...env, NO_PROXY: 'elsewhere.test,127.0.0.1' })).toMatchObject({ code: 0, listed });
  expect(proxy.asked).toEqual([]);
  await proxy.stop();
});

test('a proxy gets the password of its URL, and no message contains it', async () => {
  const proxy = await startProxy('me:hidden word');
  const location = `${server.url}/shards`;
  expect(await lsAt(location, { HTTP_PROXY: `http://me:hidden%20word@${proxy.url}` })).toMatchObject({
    code: 0,
    listed,
  });
  expect(proxy.asked[0]!.password).toBe('me:hidden word');
  const refused = await lsAt(location, { HTTP_PROXY: `http://me:wrong%20word@${proxy.url}` });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/the proxy requires a user name and a password/);
  expect(refused.stderr).not.toMatch(/wrong|hidden/);
  await proxy.stop();
});

test('a custom authority is trusted if AWS_CA_BUNDLE names it, also through HTTPS_PROXY', async () => {
  const tls = { key: fs.readFileSync(tlsFile('server.key')), cert: fs.readFileSync(tlsFile('server.pem')) };
  const secure = await faultyServer(root, tls);
  const location = `${secure.url}/shards`;
  const unknown = await lsAt(location);
  expect(unknown.code).not.toBe(0);
  expect(unknown.stderr).toMatch(/certificate of its server is not trusted .*set AWS_CA_BUNDLE/s);
  const env = { AWS_CA_BUNDLE: tlsFile('ca.pem') };
  expect(await lsAt(location, env)).toMatchObject({ code: 0, listed });
  expect(await lsAt(location, { NODE_EXTRA_CA_CERTS: tlsFile('ca.pem') })).toMatchObject({ code: 0, listed });
  // The proxy knows the address of this host; this machine does not.
  const remote = location.replace('127.0.0.1', 'shards.test');
  for (const scheme of ['http', 'https']) {
    const proxy = await startProxy('me:hidden', scheme === 'https' ? tls : undefined);
    const through = (user: string) => ({ ...env, HTTPS_PROXY: `${scheme}://${user}@${proxy.url}` });
    expect(await lsAt(remote, through('me:hidden'))).toMatchObject({ code: 0, listed });
    expect(proxy.asked[0]).toMatchObject({ method: 'CONNECT', target: new URL(remote).host, password: 'me:hidden' });
    expect(await shardtoolWith(through('me:hidden'), 'verify', remote)).toMatchObject({ code: 0 });
    const refused = await lsAt(remote, through('me:wrong'));
    expect(refused.stderr).toMatch(/the proxy requires a user name and a password/);
    expect(refused.stderr).not.toMatch(/wrong|hidden/);
    await proxy.stop();
  }
  const missing = await lsAt(location, { AWS_CA_BUNDLE: '/nowhere/ca.pem' });
  expect(missing.stderr).toMatch(/\/nowhere\/ca\.pem, which AWS_CA_BUNDLE names, cannot be read/);
  await secure.stop();
});

test('a presigned URL opens a shard, and no output or error contains its query', async () => {
  const [tar] = fs.readdirSync(path.join(root, 'shards')).filter((name) => name.endsWith('.tar'));
  const signed = `${server.url}/shards/${tar}?X-Amz-Signature=abc123&X-Amz-Security-Token=token456`;
  const sidecars = emptyFolder();
  vi.stubEnv('SHARDTOOL_SIDECARS', sidecars);
  const out = emptyFolder();
  const commands = [
    ['ls', signed, '--samples', '--json'],
    ['stats', signed],
    ['verify', signed],
    ['cat', signed, 'astronaut/astronaut_000', 'cls'],
    ['plan', signed],
    ['unpack', signed, path.join(out, 'photos')],
    ['convert', signed, path.join(out, 'converted'), '--format', 'lmdb'],
    ['bench', signed, '--workers', '1', '--json', '--cache', path.join(out, 'cache')],
  ];
  for (const args of commands) {
    const { code, stdout, stderr } = await shardtool(...args);
    expect({ args, code, stderr }).toMatchObject({ args, code: 0 });
    expect(stdout + stderr).not.toMatch(/abc123|token456/);
  }
  expect(server.asked.every(({ url }) => url.includes('X-Amz-Signature=abc123'))).toBe(true);
  const written = fs.readdirSync(out, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  for (const file of [...written, ...fs.readdirSync(sidecars, { recursive: true, withFileTypes: true })]) {
    if (file.isFile())
      expect(fs.readFileSync(path.join(file.parentPath, file.name), 'latin1')).not.toMatch(/abc123|token456/);
  }
  const faults = [
    { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' },
    { status: 404 },
    { status: 302, headers: { location: '/again?X-Amz-Signature=abc123' } },
    'ignored range',
  ] as const;
  for (const fault of faults) {
    server.fault = () => fault;
    vi.stubEnv('SHARDTOOL_SIDECARS', emptyFolder());
    const { code, stdout, stderr } = await shardtool('ls', signed);
    expect(code).not.toBe(0);
    expect(stderr).toContain(tar!);
    expect(stdout + stderr).not.toMatch(/abc123|token456/);
  }
  vi.unstubAllEnvs();
});

/** Runs a command in this process with further environment variables, except certificates, which a process reads once. */
async function hereWith(env: NodeJS.ProcessEnv, ...args: string[]) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  try {
    return await shardtool(...args);
  } finally {
    vi.unstubAllEnvs();
  }
}

/** Rejects requests that were signed with another key than the current one, as S3 does. */
function onlyKey(key: () => string): FaultyServer['fault'] {
  return ({ headers }) =>
    headers.authorization?.includes(`Credential=${key()}/`)
      ? undefined
      : { status: 400, body: '<Error><Code>ExpiredToken</Code></Error>' };
}

test('credentials that expire in the middle of an epoch are fetched again from their source', async () => {
  let current = 'key1';
  let given = 0;
  const credentials = http.createServer((_, response) => {
    given++;
    const Expiration = new Date(Date.now() + 3_600_000).toISOString();
    response.end(JSON.stringify({ AccessKeyId: current, SecretAccessKey: 's', Token: `t-${current}`, Expiration }));
  });
  await new Promise<void>((resolve) => credentials.listen(0, '127.0.0.1', resolve));
  const s3 = await faultyServer(path.dirname(root));
  let asked = 0;
  s3.fault = (request) => {
    // In the middle of reading, the key expires.
    if (request.url.endsWith('.tar') && ++asked === 3) current = 'key2';
    return onlyKey(() => current)(request);
  };
  const env = {
    AWS_ENDPOINT_URL: s3.url,
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${(credentials.address() as AddressInfo).port}/`,
    ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_PROFILE: '', AWS_EC2_METADATA_DISABLED: 'true' },
    AWS_SHARED_CREDENTIALS_FILE: '/nowhere',
    AWS_CONFIG_FILE: '/nowhere',
  };
  const args = ['bench', `s3://${bucket}/shards`, '--workers', '1', '--transform', 'raw', '--json'];
  const { code, stdout, stderr } = await hereWith(env, ...args);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ images: 60, bad: 0 });
  expect(given).toBeGreaterThanOrEqual(2);
  expect(s3.asked.at(-1)!.headers['x-amz-security-token']).toBe('t-key2');
  // If there are no other credentials, the error is thrown immediately.
  current = 'key1';
  s3.fault = onlyKey(() => 'key9');
  const refused = await hereWith(env, ...args);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/the credentials have expired/);
  await s3.stop();
  await new Promise((resolve) => credentials.close(resolve));
});

test('a credentials file that was rewritten is read again', async () => {
  const file = path.join(emptyFolder(), 'credentials');
  const write = (key: string) =>
    fs.writeFileSync(
      file,
      `[default]\naws_access_key_id=${key}\naws_secret_access_key=s\naws_session_token=t-${key}\n`,
    );
  write('key1');
  const s3 = await faultyServer(path.dirname(root));
  let current = 'key1';
  let asked = 0;
  s3.fault = (request) => {
    if (request.url.endsWith('.tar') && ++asked === 3) {
      current = 'key2';
      write(current);
    }
    return onlyKey(() => current)(request);
  };
  const env = {
    ...{ AWS_ENDPOINT_URL: s3.url, AWS_SHARED_CREDENTIALS_FILE: file, AWS_CONFIG_FILE: '/nowhere' },
    ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_PROFILE: '' },
  };
  const args = ['bench', `s3://${bucket}/shards`, '--workers', '1', '--transform', 'raw', '--json'];
  const { code, stdout, stderr } = await shardtoolWith(env, ...args);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ images: 60, bad: 0 });
  await s3.stop();
});

test('with --requester-pays, every request for a shard states that the reader pays', async () => {
  const s3 = await faultyServer(path.dirname(root));
  s3.fault = ({ headers }) =>
    headers['x-amz-request-payer'] === 'requester'
      ? undefined
      : { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' };
  const env = { AWS_ENDPOINT_URL: s3.url, AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'hidden' };
  const args = ['bench', `s3://${bucket}/shards`, '--workers', '1', '--transform', 'raw'];
  const refused = await shardtoolWith(env, ...args);
  expect(refused.stderr).toMatch(/access is denied/);
  expect(await shardtoolWith(env, ...args, '--requester-pays')).toMatchObject({ code: 0 });
  // The signature covers the header.
  expect(s3.asked.at(-1)!.headers.authorization).toMatch(/SignedHeaders=[^,]*x-amz-request-payer/);
  expect(refused.stderr).not.toContain('hidden');
  await s3.stop();
});
