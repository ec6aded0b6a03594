import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Reception } from '../reception.js';
import { askDirectly } from './connections.js';

const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
const servers: net.Server[] = [];
const sockets = new Set<net.Socket>();
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  for (const socket of sockets) socket.destroy();
});

/** A server that does to each question what `answer` says; how many connections it had. */
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

/** Asks once; the bytes that came, into memory of that length, or the text. */
async function ask(
  url: URL,
  { room, fresh = false, signal }: { room?: number; fresh?: boolean; signal?: AbortSignal } = {},
): Promise<string> {
  const target = room === undefined ? null : Buffer.from(new SharedArrayBuffer(room));
  const reception = new Reception(counts, () => target);
  await askDirectly({ method: 'GET', url, headers: { range: 'bytes=0-1' } }, reception, { fresh, signal });
  const text = reception.end();
  return target?.toString() ?? text;
}

const counted = (body: string, more = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;

test('questions follow each other on one connection, and go as they are', async () => {
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

test('an answer that comes byte by byte is the same, whether its length is counted, chunked or told by its end', async () => {
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

test('a connection that the server has closed meanwhile costs no try', async () => {
  let asked = 0;
  const server = await serve((socket) => {
    if (++asked === 2) socket.destroy();
    else socket.write(counted('hello'));
  });
  await ask(server.url, { room: 5 });
  expect(await ask(server.url, { room: 5 })).toBe('hello');
  expect([asked, server.connections]).toEqual([3, 2]);
});

test('a connection is used again only where the server lets it and nothing is left on it', async () => {
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
  await expect(ask(server.url, { room: 5 })).rejects.toThrow('more bytes came than the answer has');
});

test('what is no answer, ends early or is too long is an error in a sentence', async () => {
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

test('a signal ends an answer at once, and nothing is written to its place from then on', async () => {
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
  await expect(askDirectly(request, reception, { fresh: false, signal: controller.signal })).rejects.toThrow('enough');
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(target.toString().replaceAll('\0', '')).toBe('a'.repeat(10));
  await expect(ask(server.url, { signal: controller.signal })).rejects.toThrow('enough');
});

test('at most 256 connections are open at once, and the others wait', async () => {
  let held: net.Socket[] | null = [];
  const server = await serve((socket) => {
    if (held === null) socket.write(counted('hello'));
    else if (held.push(socket) === 256) {
      // No other question comes before one of these is answered.
      setTimeout(() => {
        for (const waiting of held!) waiting.write(counted('hello'));
        held = null;
      }, 50);
    }
  });
  await Promise.all(Array.from({ length: 400 }, () => ask(server.url, { room: 5 })));
  expect(server.connections).toBe(256);
});

test('a header with a line break asks for nothing', async () => {
  const server = await serve((socket) => socket.write(counted('hello')));
  const request = { method: 'GET', url: server.url, headers: { a: 'b\r\nc: d' } } as const;
  const asked = askDirectly(request, new Reception(counts), { fresh: false, signal: undefined });
  await expect(asked).rejects.toThrow('a header has characters that none may have');
  expect(server.connections).toBe(0);
});
