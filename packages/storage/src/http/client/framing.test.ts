import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TransientError } from '../retry.js';
import { type Framing, framingOf } from './framing.js';
import { parseHead } from './head.js';
import { Reception } from './reception.js';

const head = (headers: Record<string, string>, status = 200) => ({ status, headers, isKept: true });

/** Returns the body that arrives in these pieces, and the number of bytes of the last piece that are not part of it. */
function receive(framing: Framing, pieces: readonly Uint8Array[]): { body: Buffer; left: number } {
  const parts: Uint8Array[] = [];
  let left = 0;
  for (const piece of pieces) {
    let at = 0;
    while (at < piece.length && !framing.isWhole) {
      const run = Math.min(framing.run, piece.length - at);
      if (run > 0) {
        parts.push(piece.subarray(at, at + run));
        framing.passed(run);
        at += run;
      } else at += framing.skip(piece.subarray(at));
    }
    left = piece.length - at;
  }
  return { body: Buffer.concat(parts), left };
}

/** Splits bytes at some of these offsets. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length));
}

test('a repeated equal length is accepted, and two different lengths throw an error', () => {
  const lengths = (...all: string[]) =>
    parseHead(['HTTP/1.1 206 OK', ...all.map((one) => `Content-Length: ${one}`)].join('\r\n'));
  expect(framingOf(lengths('5', '5'), 'GET').run).toBe(5);
  expect(framingOf(lengths('5, 5'), 'GET').run).toBe(5);
  expect(() => framingOf(lengths('5', '6'), 'GET')).toThrow(TransientError);
  expect(() => framingOf(lengths('5', ''), 'GET')).toThrow(TransientError);
});

test('a header of thousands of spaces is parsed or rejected in linear time', () => {
  const spaces = ' '.repeat(16_000);
  const head = (line: string) => parseHead(`HTTP/1.1 200 OK\r\n${line}`).headers;
  expect(head(`etag:${spaces}"a"${spaces}`).etag).toBe('"a"');
  expect(() => head(`etag:${spaces}\rb`)).toThrow(TransientError);
});

const chunk = fc.uint8Array({ minLength: 1, maxLength: 300 });
const places = fc.array(fc.nat(5000), { maxLength: 20 });

test('a chunked body has the same bytes however chunks and reads are split', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 8 }), places, fc.boolean(), (chunks, cuts, hasTrailer) => {
      const lines = chunks.flatMap((bytes) => [Buffer.from(`${bytes.length.toString(16)};a=b\r\n`), bytes, '\r\n']);
      const end = hasTrailer ? '0\r\nx-sum: 1\r\n\r\n' : '0\r\n\r\n';
      const sent = Buffer.concat([...lines, end].map((part) => Buffer.from(part)));
      const framing = framingOf(head({ 'transfer-encoding': 'chunked' }), 'GET');
      const { body, left } = receive(framing, cut(sent, cuts));
      expect(framing.isWhole).toBe(true);
      expect(left).toBe(0);
      expect(body).toEqual(Buffer.concat(chunks));
    }),
  );
});

test('a body with a length ends after it, not at the end of the connection', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), fc.nat(500), places, (sent, length, cuts) => {
      const framing = framingOf(head({ 'content-length': String(length) }), 'GET');
      const { body } = receive(framing, cut(sent, cuts));
      expect(body).toEqual(Buffer.from(sent.subarray(0, length)));
      expect(framing.close()).toBe(sent.length >= length);
    }),
  );
  expect(framingOf(head({}), 'GET').close()).toBe(true);
  expect(framingOf(head({}, 204), 'GET').isWhole).toBe(true);
  expect(framingOf(head({ 'content-length': '5' }), 'HEAD').isWhole).toBe(true);
});

test('damaged chunks throw an error or never complete', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), places, (bytes, cuts) => {
      const framing = framingOf(head({ 'transfer-encoding': 'chunked' }), 'GET');
      try {
        receive(framing, cut(bytes, cuts));
      } catch (error) {
        expect(error).toBeInstanceOf(TransientError);
      }
    }),
  );
  for (const lines of ['x\r\n', '3\r\nabcd\r\n', '-1\r\n', '0x3\r\n', `${'1'.repeat(5000)}`]) {
    const framing = framingOf(head({ 'transfer-encoding': 'chunked' }), 'GET');
    expect(() => receive(framing, [Buffer.from(lines)])).toThrow(TransientError);
  }
});

test('an ambiguous length throws an error', () => {
  const both = { 'transfer-encoding': 'chunked', 'content-length': '3' };
  for (const headers of [both, { 'transfer-encoding': 'gzip, chunked' }, { 'content-length': '3, 4' }]) {
    expect(() => framingOf(head(headers), 'GET')).toThrow(TransientError);
  }
  expect(() => framingOf(head({ 'content-length': '-3' }), 'GET')).toThrow(TransientError);
});

test('a head is parsed into status and headers, or throws an error that is retried', () => {
  expect(parseHead('HTTP/1.1 206 Partial Content\r\nETag:  "a: b" \r\nVary: a\r\nvary: b\r\nX:')).toEqual({
    status: 206,
    headers: { etag: '"a: b"', vary: 'a, b', x: '' },
    isKept: true,
  });
  expect(parseHead('HTTP/1.1 200\r\nConnection: Close').isKept).toBe(false);
  expect(parseHead('HTTP/1.0 200 OK').isKept).toBe(false);
  expect(Object.entries(parseHead('HTTP/1.1 200 OK\r\n__proto__: 1').headers)).toEqual([['__proto__', '1']]);
  for (const text of [
    '',
    'HTTP/2 200',
    'HTTP/1.1 20',
    'SSH-2.0',
    'HTTP/1.1 200 OK\r\n folded: line',
    'HTTP/1.1 200 OK\r\na b: c',
  ]) {
    expect(() => parseHead(text)).toThrow(TransientError);
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseHead(`HTTP/1.1 200 OK\r\n${text}`);
      } catch (error) {
        expect(error).toBeInstanceOf(TransientError);
      }
    }),
  );
});

test('received bytes stay within their memory', () => {
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  const reception = new Reception(counts, () => new Uint8Array(3));
  reception.begin(206, {});
  reception.take(Buffer.from('ab'));
  expect(() => reception.end()).toThrow('ends after 2 of 3 bytes');
  expect(() => reception.take(Buffer.from('cd'))).toThrow('more bytes came');
  expect(reception.room).toHaveLength(1);
});
