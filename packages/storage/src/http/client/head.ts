import type { IncomingHttpHeaders } from 'node:http';
import { TransientError } from '../retry.js';

/** Limit of the length of a head. */
export const HEAD_BYTES = 16 << 10;
export const HEAD_END = Buffer.from('\r\n\r\n');

/** The head of an answer. */
export interface Head {
  readonly status: number;
  /** Names are in lower case. Values of a header that comes several times are joined by commas. */
  readonly headers: IncomingHttpHeaders;
  /** True if the server keeps the connection open for another request. */
  readonly isKept: boolean;
}

const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: .*)?$/;
const HEADER = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):(.*)$/;

/**
 * Parses the head of an answer of HTTP/1.1 (RFC 9112, sections 4 and 5), without the empty line at its end. Throws
 * {@link TransientError} if it is not valid: something between the server and this process may have cut or mixed answers.
 */
export function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split(/\r?\n/);
  const status = STATUS_LINE.exec(first);
  if (status === null) throw new TransientError('the answer is not HTTP/1.1');
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const header = HEADER.exec(line);
    if (header === null) throw new TransientError('the answer has a line that is not a header');
    const name = header[1]!.toLowerCase();
    // A regular expression that trims as well would take minutes for a long run of spaces.
    const value = header[2]!.trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  const length = headers['content-length']?.split(',').map((one) => one.trim());
  // A length that is repeated counts once (RFC 9110, section 8.6).
  if (length?.every((one) => one === length[0])) headers['content-length'] = length[0]!;
  const isOld = status[1] === '0';
  const connection = (headers.connection ?? '').toLowerCase();
  return {
    status: Number(status[2]),
    headers,
    isKept: isOld ? connection.includes('keep-alive') : !connection.includes('close'),
  };
}
