/**
 * Decides which requests are admitted. Any page that is open in a browser can send requests to 127.0.0.1, and any
 * domain name can be pointed there. So a request needs the secret of the address, and a Host that is this server. If
 * the browser sends an Origin, it must be this server as well.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Returns a secret of 144 bits, as characters that are allowed in an address. */
export function newSecret(): string {
  return randomBytes(18).toString('base64url');
}

/**
 * Headers of every answer: nothing is loaded from elsewhere, no inline scripts, no guessing of types, no address is
 * sent to other sites.
 */
export const SAFE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;

/** Returns the part of the path after the secret, without its leading slash, or null if the request is rejected. */
export function admitted(request: IncomingMessage, { secret, port }: { secret: string; port: number }): string | null {
  const { host, origin, 'sec-fetch-site': site } = request.headers;
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (host === undefined || !hosts.includes(host)) return null;
  if (origin !== undefined && origin !== `http://${host}`) return null;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return null;
  const [, given = '', rest] = /^\/([^/?]*)(?:\/(.*))?$/s.exec(request.url ?? '') ?? [];
  return rest !== undefined && isEqual(given, secret) ? rest : null;
}

function isEqual(given: string, secret: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(secret)];
  return a.length === b.length && timingSafeEqual(a, b);
}
