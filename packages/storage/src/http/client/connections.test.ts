import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { askHost } from './connections.js';
import { BrokenError, Reception } from './reception.js';

const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
const servers: net.Server[] = [];
const sockets = new Set<net.Socket>();
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  for (const socket of sockets) socket.destroy();
  vi.unstubAllEnvs();
});

/** A server that calls `answer` for all that it receives, and counts its connections. */
async function serve(answer: (socket: net.Socket, question: string) => void) {
  const self = { url: new URL('http://127.0.0.1'), connections: 0 };
  const server = net.createServer((socket) => {
    self.connections++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => answer(socket, bytes.toString()));
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  self.url = new URL(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}/a?b`);
  return self;
}

/** Sends one request. Returns the bytes that were received into memory of length `room`, or the text. */
async function ask(
  url: URL,
  { room, fresh = false, signal }: { room?: number; fresh?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<string> {
  const target = room === undefined ? null : Buffer.from(new SharedArrayBuffer(room));
  const reception = new Reception(counts, () => target);
  await askHost({ method: 'GET', url, headers: { range: 'bytes=0-1' } }, reception, { fresh, signal });
  const text = reception.end();
  return target?.toString() ?? text;
}

const counted = (body: string, more = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;

test('requests share one connection, and send only their own headers', async () => {
  const questions: string[] = [];
  const server = await serve((socket, question) => {
    questions.push(question);
    socket.write(counted('hello'));
  });
  expect(await ask(server.url, { room: 5 })).toBe('hello');
  expect(await ask(server.url)).toBe('hello');
  expect(server.connections).toBe(1);
  expect(questions[0]).toBe(
    `GET /a?b HTTP/1.1\r\nhost: ${server.url.host}\r\nrange: bytes=0-1\r\nconnection: keep-alive\r\n\r\n`,
  );
  expect(await ask(server.url, { fresh: true })).toBe('hello');
  expect(server.connections).toBe(2);
});

test('a response that arrives byte by byte is complete: with a length, chunked, or until the connection ends', async () => {
  const answers = [
    `HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${counted('hello')}`,
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n',
    'HTTP/1.0 200 OK\r\n\r\nhello',
  ];
  const server = await serve(async (socket, question) => {
    const answer = answers[Number(/x=(\d)/.exec(question)![1])]!;
    for (const byte of answer) {
      socket.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (answer.startsWith('HTTP/1.0')) socket.end();
  });
  server.url.search = '';
  for (let x = 0; x < answers.length; x++) {
    const url = new URL(`?x=${x}`, server.url);
    expect(await ask(url, { room: 5 })).toBe('hello');
    expect(await ask(url)).toBe('hello');
  }
});

test('an idle connection that the server has closed does not count as an attempt', async () => {
  let asked = 0;
  const server = await serve((socket) => {
    if (++asked === 2) socket.destroy();
    else socket.write(counted('hello'));
  });
  await ask(server.url, { room: 5 });
  expect(await ask(server.url, { room: 5 })).toBe('hello');
  expect([asked, server.connections]).toEqual([3, 2]);
});

test('a connection is reused only if the server allows it and no unread data is left on it', async () => {
  for (const [answer, connections] of [
    [counted('hello', 'connection: close\r\n'), 2],
    [counted('hello', 'keep-alive: timeout=1\r\n'), 2],
    [counted('hello', 'keep-alive: timeout=60\r\n'), 1],
  ] as const) {
    const server = await serve((socket) => socket.write(answer));
    await ask(server.url, { room: 5 });
    await ask(server.url, { room: 5 });
    expect([answer, server.connections]).toEqual([answer, connections]);
  }
  const server = await serve((socket) => socket.write(`${counted('hello')}x`));
  await expect(ask(server.url, { room: 5 })).rejects.toThrow('the server sent more bytes than announced');
});

test('a response that is not HTTP, ends early or is too long throws an error that says so', async () => {
  for (const [answer, why] of [
    ['SSH-2.0-OpenSSH_9.2\r\n\r\n', 'not HTTP'],
    [counted('hello').slice(0, -1), 'connection was closed'],
    [counted('hello!'), 'more bytes came than were asked for'],
    [`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(4000)}`, 'has no end'],
    ['', 'connection was closed'],
  ] as const) {
    const server = await serve((socket) => socket.end(answer));
    await expect(ask(server.url, { room: 5 })).rejects.toThrow(why);
  }
  const server = await serve((socket) => socket.end(counted('hell')));
  await expect(ask(server.url, { room: 5 })).rejects.toThrow('ends after 4 of 5 bytes');
});

test('a signal ends a response immediately, and nothing more is written to its memory', async () => {
  const controller = new AbortController();
  const server = await serve((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n${'a'.repeat(10)}`);
    setTimeout(() => {
      controller.abort(new Error('enough'));
      socket.write('b'.repeat(90));
    }, 20);
  });
  const target = Buffer.from(new SharedArrayBuffer(100));
  const reception = new Reception(counts, () => target);
  const request = { method: 'GET', url: server.url, headers: {} } as const;
  await expect(askHost(request, reception, { fresh: false, signal: controller.signal })).rejects.toThrow('enough');
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(target.toString().replaceAll('\0', '')).toBe('a'.repeat(10));
  await expect(ask(server.url, { signal: controller.signal })).rejects.toThrow('enough');
});

test('at most 256 connections are open, and other requests wait', async () => {
  let held: net.Socket[] | null = [];
  const server = await serve((socket) => {
    if (held === null) socket.write(counted('hello'));
    else if (held.push(socket) === 256) {
      // No other request is received before one of these is answered.
      setTimeout(() => {
        for (const waiting of held!) waiting.write(counted('hello'));
        held = null;
      }, 50);
    }
  });
  await Promise.all(Array.from({ length: 400 }, () => ask(server.url, { room: 5 })));
  expect(server.connections).toBe(256);
});

test('a request that waits for a free connection is rejected as soon as it is aborted', async () => {
  const held: net.Socket[] = [];
  const server = await serve((socket) => held.push(socket));
  const busy = Array.from({ length: 256 }, () => ask(server.url, { room: 5 }));
  const controller = new AbortController();
  const waiting = [controller.signal, undefined].map((signal) => ask(server.url, { room: 5, signal }));
  controller.abort(new Error('enough'));
  await expect(waiting[0]).rejects.toThrow('enough');
  await vi.waitUntil(() => held.length === 256);
  for (const socket of held) socket.write(counted('hello'));
  await Promise.all(busy);
  await vi.waitUntil(() => held.length === 257);
  held[256]!.write(counted('hello'));
  expect(await waiting[1]).toBe('hello');
});

test('a request with a line break in a header is not sent', async () => {
  const server = await serve((socket) => socket.write(counted('hello')));
  const request = { method: 'GET', url: server.url, headers: { a: 'b\r\nc: d' } } as const;
  const asked = askHost(request, new Reception(counts), { fresh: false, signal: undefined });
  await expect(asked).rejects.toThrow('a header contains characters that are not allowed');
  expect(server.connections).toBe(0);
});

/** Sends a request with a body, and returns status and text of the answer. */
async function send(url: URL, method: 'PUT' | 'POST' | 'HEAD' | 'DELETE', body?: Uint8Array, signal?: AbortSignal) {
  const reception = new Reception(counts);
  await askHost({ method, url, headers: {}, body }, reception, { fresh: false, signal });
  return { status: reception.status, text: reception.end() };
}

test('bodies of any length are sent completely, and the next request uses the same connection', async () => {
  const received: string[] = [];
  const server = await serve((socket, text) => {
    received[0] = (received[0] ?? '') + text;
    const [head, body = ''] = received[0].split('\r\n\r\n');
    if (body.length < Number(/content-length: (\d+)/.exec(head!)?.[1] ?? 0)) return;
    received.unshift('');
    socket.write(counted('ok'));
  });
  for (const length of [0, 1, 65_536, 65_537, 3_000_000]) {
    const body = Buffer.alloc(length, 'x');
    expect(await send(server.url, 'PUT', body)).toEqual({ status: 200, text: 'ok' });
    const [head, sent] = received[1]!.split('\r\n\r\n');
    expect(head).toContain(`content-length: ${length}`);
    expect(sent).toHaveLength(length);
  }
  await send(server.url, 'POST');
  expect(received[1]).toContain('content-length: 0');
  await send(server.url, 'DELETE');
  expect(received[1]).not.toContain('content-length');
  expect(server.connections).toBe(1);
});

test('the response to HEAD has no body, whatever length its header states', async () => {
  const server = await serve((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n'));
  expect((await send(server.url, 'HEAD')).status).toBe(200);
  expect((await send(server.url, 'HEAD')).status).toBe(200);
  expect(server.connections).toBe(1);
});

test('a server may reject a request before it has read the body, and the connection is not reused', async () => {
  const server = await serve((socket) => {
    socket.pause();
    if (!socket.writableEnded && socket.bytesWritten === 0) socket.write(counted('no').replace('200 OK', '403 Denied'));
  });
  const body = Buffer.alloc(50 << 20);
  expect(await send(server.url, 'PUT', body)).toEqual({ status: 403, text: 'no' });
  expect(await send(server.url, 'PUT', body)).toEqual({ status: 403, text: 'no' });
  expect(server.connections).toBe(2);
});

test('a signal ends a request whose body is being sent', async () => {
  const controller = new AbortController();
  const server = await serve((socket) => {
    socket.pause();
    controller.abort(new Error('enough'));
  });
  await expect(send(server.url, 'PUT', Buffer.alloc(50 << 20), controller.signal)).rejects.toThrow('enough');
});

test('a proxy that rejects a tunnel throws an error, and the request is retried only if that may help', async () => {
  for (const [status, name, message] of [
    [407, 'FileError', 'the proxy requires a user name and a password'],
    [403, 'FileError', 'the proxy refuses to connect to its host (403)'],
    [502, 'Error', 'the proxy answers 502'],
  ] as const) {
    const questions: string[] = [];
    const proxy = await serve((socket, question) => {
      questions.push(question);
      socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
    });
    vi.stubEnv('HTTPS_PROXY', `http://me:a%20word@${proxy.url.host}`);
    const asked = ask(new URL('https://shards.test/a'));
    await expect(asked).rejects.toMatchObject({ name, message: expect.stringContaining(message) });
    const user = Buffer.from('me:a word').toString('base64');
    const head = `CONNECT shards.test:443 HTTP/1.1\r\nhost: shards.test:443\r\nproxy-authorization: Basic ${user}`;
    expect(questions).toEqual([`${head}\r\n\r\n`]);
  }
});

test('waiting for a silent proxy ends with the signal, and a proxy that closes the connection is a broken connection', async () => {
  const controller = new AbortController();
  const silent = await serve(() => controller.abort(new Error('enough')));
  vi.stubEnv('HTTPS_PROXY', silent.url.origin);
  await expect(ask(new URL('https://shards.test/a'), { signal: controller.signal })).rejects.toThrow('enough');
  const closed = await serve((socket) => socket.destroy());
  vi.stubEnv('HTTPS_PROXY', closed.url.origin);
  await expect(ask(new URL('https://shards.test/a'))).rejects.toBeInstanceOf(BrokenError);
});
