import net from 'node:net';
import tls from 'node:tls';
import { TransientError } from '../retry.js';
import { HEAD_BYTES, HEAD_END, parseHead } from './head.js';
import { type HttpProxy, proxyRefused, proxyUnauthorized } from './proxy.js';
import { BrokenError } from './reception.js';
import { trusted } from './trust.js';

/** A connection that is not made within this time is tried again. */
const CONNECT_MS = 5_000;
/** Codes of errors whose message is the reason. */
export const CONNECT_TIMEOUT = 'CONNECT_TIMEOUT';
export const TUNNEL_FAILED = 'TUNNEL_FAILED';

/** Takes the bytes that a socket receives. */
export interface Receiver {
  /** Returns memory for the next bytes. */
  next(): Uint8Array;
  /** Called when `bytes` bytes were written to the memory that {@link next} returned last. */
  received(bytes: number): void;
}

export interface SocketOptions {
  readonly proxy: HttpProxy | null;
  /** Session of an earlier TLS connection to this host. Resuming it saves work on both sides. */
  readonly session: Buffer | undefined;
  onSession(session: Buffer): void;
  readonly receiver: Receiver;
  readonly signal: AbortSignal | undefined;
}

/**
 * Connects to the host of a URL: directly, through a proxy that forwards requests for http, or through a tunnel of the proxy for
 * https. Rejects with {@link BrokenError}, FileError if the proxy refuses, or the reason of the signal.
 */
export async function openSocket(url: URL, options: SocketOptions): Promise<net.Socket> {
  const { proxy, session, onSession, receiver, signal } = options;
  const isSecure = url.protocol === 'https:';
  const resumed = isSecure && session !== undefined ? { session } : {};
  if (proxy === null || !isSecure) {
    // The system writes bytes into memory of the receiver: no copy, and no memory that has to be collected.
    const onread = {
      buffer: () => receiver.next(),
      callback: (bytes: number) => {
        receiver.received(bytes);
        return true;
      },
    };
    const socket = connectTo(proxy?.url ?? url, { onread, ...resumed });
    if (isSecure) socket.on('session', onSession);
    return established(socket, signal);
  }
  const tunnel = await established(connectTo(proxy.url, {}), signal);
  await openTunnel(tunnel, url, proxy, signal);
  const socket = tls.connect({ socket: tunnel, ...tlsOptions(url), ...resumed }).on('session', onSession);
  await established(socket, signal);
  // A TLS socket over another socket ignores `onread`.
  return socket.on('data', (bytes: Uint8Array) => copyTo(receiver, socket, bytes));
}

function connectTo(url: URL, options: Partial<net.TcpNetConnectOpts & tls.ConnectionOptions>): net.Socket {
  const { protocol, port } = url;
  const isSecure = protocol === 'https:';
  const to = { ...options, host: hostOf(url), port: Number(port) || (isSecure ? 443 : 80) };
  return isSecure ? tls.connect({ ...to, ...tlsOptions(url) }) : net.connect(to);
}

function tlsOptions(url: URL): tls.ConnectionOptions {
  const host = hostOf(url);
  return { ...(net.isIP(host) === 0 && { servername: host }), ...trusted(), ALPNProtocols: ['http/1.1'] };
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Resolves when the socket is connected; for a TLS socket, when the handshake is complete. */
function established<Socket extends net.Socket>(socket: Socket, signal: AbortSignal | undefined): Promise<Socket> {
  socket.setNoDelay(true);
  const event = socket instanceof tls.TLSSocket ? 'secureConnect' : 'connect';
  return whileOpening(socket, signal, (resolve) => {
    socket.once(event, () => resolve(socket));
  });
}

/** Asks a proxy to connect to the host of a URL (RFC 9110, section 9.3.6). */
function openTunnel(socket: net.Socket, url: URL, proxy: HttpProxy, signal: AbortSignal | undefined): Promise<void> {
  const target = `${url.hostname}:${url.port || '443'}`;
  const authorization = proxy.authorization === null ? '' : `proxy-authorization: ${proxy.authorization}\r\n`;
  return whileOpening(socket, signal, (resolve, reject) => {
    let head = Buffer.alloc(0);
    const onData = (bytes: Buffer): void => {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(HEAD_END);
      if (end < 0 && head.length < HEAD_BYTES) return;
      socket.off('data', onData);
      socket.pause();
      try {
        checkTunnel(head, end, url);
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    socket.on('data', onData);
    socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${authorization}\r\n`);
  });
}

/** Throws if this answer of a proxy is not a tunnel. */
function checkTunnel(answer: Buffer, end: number, url: URL): void {
  if (end < 0) throw new TransientError("the head of the proxy's answer has no end");
  const { status } = parseHead(answer.toString('latin1', 0, end));
  if (status === 407) throw proxyUnauthorized(url);
  if (status >= 400 && status < 500 && status !== 408 && status !== 429) throw proxyRefused(url, status);
  if (status < 200 || status >= 300) throw failed(TUNNEL_FAILED, `the proxy answers ${status}`);
  if (answer.length > end + HEAD_END.length) throw new TransientError('the host sent bytes before it was asked');
}

/** Waits for a step of opening. If it fails, takes too long or is aborted, the socket is destroyed. */
function whileOpening<Result>(
  socket: net.Socket,
  signal: AbortSignal | undefined,
  start: (resolve: (result: Result) => void, reject: (error: unknown) => void) => void,
): Promise<Result> {
  return new Promise<Result>((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (error: unknown): void => {
      settle();
      reject(error);
      socket.destroy();
    };
    const onAbort = (): void => fail(signal!.reason);
    const timer = setTimeout(
      () => fail(failed(CONNECT_TIMEOUT, `no connection within ${CONNECT_MS / 1000} seconds`)),
      CONNECT_MS,
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.on('error', (error) => fail(new BrokenError(error)));
    socket.once('close', () => fail(new BrokenError(new Error('the connection was closed'))));
    start((result) => {
      settle();
      resolve(result);
    }, fail);
  });
}

function failed(code: string, message: string): BrokenError {
  return new BrokenError(Object.assign(new Error(message), { code }));
}

function copyTo(receiver: Receiver, socket: net.Socket, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length && !socket.destroyed; ) {
    const room = receiver.next();
    const piece = bytes.subarray(at, at + room.length);
    room.set(piece);
    at += piece.length;
    receiver.received(piece.length);
  }
}
