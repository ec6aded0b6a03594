/**
 * Who may ask. Every page that a person has open can send requests to 127.0.0.1, and a name of anybody's can be made to lead
 * there. So an answer takes the secret of the address, a Host that is this server, and, where a browser says which page asks,
 * that it is ours.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** 144 bits, as characters of an address. */
export function newSecret(): string {
  return randomBytes(18).toString('base64url');
}

/** What every answer says: nothing from elsewhere, no script in the page itself, no guess what bytes are, no address to others. */
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

/** What of a path stands behind the secret, without the slash at its begin; null where the request is refused. */
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
