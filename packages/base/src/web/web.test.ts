import { isAscii as isAsciiNode, isUtf8 as isUtf8Node } from 'node:buffer';
import { createHash as nodeHash } from 'node:crypto';
import { crc32 as nodeCrc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { randomOf } from '../../../../test/random.js';
import { WebBuffer } from './buffer.js';
import { isAscii, isUtf8 } from './node/buffer.js';
import { createHash } from './node/crypto.js';
import { setTimeout } from './node/timers.js';
import { crc32, gunzipSync } from './node/zlib.js';

const Web = WebBuffer as unknown as typeof Buffer;
const CASES = 300;

/** Bytes of any kind: text with characters of one to four bytes, truncated text, and noise. */
function someBytes(random: () => number): Uint8Array {
  const length = Math.floor(random() * 200);
  const characters = ['a', 'Z', '7', 'ä', '漢', '🙂', '\0', '\ufeff'];
  if (random() < 0.3) return Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const text = Array.from({ length }, () => characters[Math.floor(random() * characters.length)]).join('');
  const bytes = Buffer.from(text);
  return Uint8Array.from(random() < 0.5 ? bytes : bytes.subarray(Math.floor(random() * 3), bytes.length - 1));
}

test('bytes in a browser are read, written, searched and compared as in Node', () => {
  const random = randomOf('web buffer');
  const many = (most: number) => Math.floor(random() * most);
  for (let i = 0; i < CASES; i++) {
    const bytes = someBytes(random);
    const [node, web] = [Buffer.from(bytes), Web.from(bytes)];
    const [from, to] = [many(220), many(220)];
    for (const encoding of ['utf8', 'latin1', 'hex', 'base64', 'ascii'] as const) {
      expect(web.toString(encoding, from, to)).toBe(node.toString(encoding, from, to));
    }
    const text = Buffer.from(someBytes(random)).toString();
    for (const encoding of ['utf8', 'latin1'] as const) {
      expect(Web.byteLength(text, encoding)).toBe(Buffer.byteLength(text, encoding));
      expect([...Web.from(text, encoding)]).toEqual([...Buffer.from(text, encoding)]);
      const [target, other] = [Buffer.alloc(60), Web.alloc(60)];
      const at = many(61);
      expect(other.write(text, at, encoding)).toBe(target.write(text, at, encoding));
      expect([...other]).toEqual([...target]);
      // Whole characters: Node 24 aborts the process if half of a surrogate pair is searched.
      const short = [...text].slice(0, 1 + many(2)).join('') || 'a';
      expect(web.indexOf(short, from, encoding)).toBe(node.indexOf(short, from, encoding));
      expect(web.lastIndexOf(short, undefined, encoding)).toBe(node.lastIndexOf(short, undefined, encoding));
      expect(web.includes(short, 0, encoding)).toBe(node.includes(short, 0, encoding));
    }
    const other = someBytes(random);
    expect(Web.compare(web, other)).toBe(Buffer.compare(node, other));
    expect(web.equals(Uint8Array.from(bytes))).toBe(true);
    expect([...Web.concat([web, other])]).toEqual([...Buffer.concat([node, other])]);
    expect([...web.subarray(from, to)]).toEqual([...node.subarray(from, to)]);
    expect(isUtf8(bytes)).toBe(isUtf8Node(bytes));
    expect(isAscii(bytes)).toBe(isAsciiNode(bytes));
  }
  expect(Web.from('0aFFxx', 'hex').toString('hex')).toBe(Buffer.from('0aFFxx', 'hex').toString('hex'));
  expect(Web.alloc(3, ' ').toString()).toBe('   ');
  const memory = new ArrayBuffer(8);
  Web.from(memory, 2, 3)[0] = 7;
  expect(new Uint8Array(memory)[2]).toBe(7);
});

const NUMBERS = ['UInt16', 'UInt32', 'Int16', 'Int32', 'BigUInt64', 'BigInt64', 'Float', 'Double'].flatMap((type) => [
  `${type}LE`,
  `${type}BE`,
]);

test.each(NUMBERS)('%s is read and written at the same offset as in Node', (name) => {
  const random = randomOf(name);
  type Access = Record<string, (...given: unknown[]) => unknown>;
  for (let i = 0; i < 50; i++) {
    const bytes = Uint8Array.from({ length: 24 }, () => Math.floor(random() * 256));
    const [node, web] = [Buffer.from(bytes), Web.from(bytes)] as unknown as [Access & Buffer, Access & Buffer];
    const at = Math.floor(random() * 16);
    const value = node[`read${name}`]!(at);
    expect(web[`read${name}`]!(at)).toEqual(value);
    if (Number.isNaN(value)) continue;
    const to = Math.floor(random() * 16);
    expect(web[`write${name}`]!(value, to)).toBe(node[`write${name}`]!(value, to));
    expect([...web]).toEqual([...node]);
  }
  expect(() => (Web.alloc(1) as unknown as Access)[`read${name}`]!(0)).toThrow(RangeError);
});

test('checksums and hashes equal those of Node, also if they are computed in pieces', () => {
  const random = randomOf('web sums');
  for (let length = 0; length < 300; length += 1 + Math.floor(random() * 3)) {
    const bytes = Uint8Array.from({ length }, () => Math.floor(random() * 256));
    const cut = Math.floor(random() * length);
    expect(crc32(bytes)).toBe(nodeCrc32(bytes));
    expect(crc32(bytes.subarray(cut), crc32(bytes.subarray(0, cut)))).toBe(nodeCrc32(bytes));
    const hash = createHash('sha256').update(bytes.subarray(0, cut)).update(bytes.subarray(cut));
    expect(hash.digest('hex')).toBe(nodeHash('sha256').update(bytes).digest('hex'));
  }
  expect(crc32('ä漢')).toBe(nodeCrc32('ä漢'));
  expect(createHash('sha256').update('ä漢').digest('hex')).toBe(nodeHash('sha256').update('ä漢').digest('hex'));
  expect(() => gunzipSync()).toThrow(/shardtool convert/);
});

test('a wait ends when it is aborted', async () => {
  const stop = new AbortController();
  const wait = setTimeout(1e9, undefined, { signal: stop.signal });
  stop.abort(new Error('enough'));
  await expect(wait).rejects.toThrow('enough');
  await expect(setTimeout(0, 'done')).resolves.toBe('done');
});
