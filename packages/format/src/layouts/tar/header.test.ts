import { DamagedShardError, ShardtoolError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { header } from '../../../../../test/tar-craft.js';
import { decodeHeader, encodeHeader, padded } from './header.js';
import { windowOn } from './window.js';

function decode(block: Uint8Array) {
  const buffer = Buffer.from(Uint8Array.from(block).buffer);
  return decodeHeader(windowOn(buffer, buffer.length), 0, 'a.tar', 4096);
}

const segment = fc.string({ unit: fc.constantFrom(...'abcXYZ019._- ~'), minLength: 1, maxLength: 50 });
const asciiName = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));

test('a header that fits is read back unchanged, and always has the same bytes', () => {
  fc.assert(
    fc.property(asciiName, fc.integer({ min: 0, max: 8 ** 11 - 1 }), (name, bytes) => {
      const block = new Uint8Array(512).fill(0xaa);
      fc.pre(encodeHeader(block, 0, name, bytes));
      expect(decode(block)).toEqual({ name, bytes, type: '0', linkTarget: '' });
      const again = new Uint8Array(1024).fill(0x55);
      encodeHeader(again, 512, name, bytes);
      expect(again.subarray(512)).toEqual(block);
    }),
  );
});

test('a name of up to 100 bytes always fits, and a longer one if a slash splits it into 155 and 100', () => {
  const block = new Uint8Array(512);
  const fits = (name: string) => encodeHeader(block, 0, name, 0);
  expect(fits('n'.repeat(100))).toBe(true);
  expect(fits('n'.repeat(101))).toBe(false);
  expect(fits(`${'p'.repeat(155)}/${'n'.repeat(100)}`)).toBe(true);
  expect(fits(`${'p'.repeat(156)}/${'n'.repeat(99)}`)).toBe(false);
  expect(fits(`${'p'.repeat(155)}/${'n'.repeat(101)}`)).toBe(false);
  expect(fits(`/${'n'.repeat(100)}`)).toBe(false);
});

test('names that are not ASCII and sizes of 8 GiB or more do not fit', () => {
  const block = new Uint8Array(512);
  expect(encodeHeader(block, 0, 'é.jpg', 0)).toBe(false);
  expect(encodeHeader(block, 0, 'a.jpg', 2 ** 33 - 1)).toBe(true);
  expect(encodeHeader(block, 0, 'a.jpg', 2 ** 33)).toBe(false);
});

test('a written header has mode 0644 and no time or owner', () => {
  const block = Buffer.alloc(512);
  encodeHeader(block, 0, 'a/b.jpg', 1000);
  expect(block.toString('latin1', 100, 148)).toBe(
    '0000644\x000000000\x000000000\0' + '00000001750\0' + '00000000000\0',
  );
  expect(block.toString('latin1', 257, 265)).toBe('ustar\x0000');
  expect(block).toEqual(
    (() => {
      const crafted = header({ name: 'a/b.jpg', size: 1000 });
      for (const at of [108, 116, 329, 337]) crafted.write('0000000\0', at, 'latin1');
      let sum = 8 * 32;
      for (const [at, byte] of crafted.entries()) sum += at >= 148 && at < 156 ? 0 : byte;
      crafted.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
      return crafted;
    })(),
  );
});

test('a block of zeros is not a header', () => {
  expect(decode(new Uint8Array(512))).toBeNull();
});

test('the signed checksum of old tars is accepted too', () => {
  const name = Buffer.from('é.jpg');
  expect(decode(header({ name, signedChecksum: true }))?.name).toBe('é.jpg');
  expect(decode(header({ name }))?.name).toBe('é.jpg');
});

test('a checksum with leading spaces and no NUL is read', () => {
  const sum = Number.parseInt(header({}).toString('latin1', 148, 154), 8);
  expect(decode(header({ checksumField: sum.toString(8).padStart(7) }))?.name).toBe('a.jpg');
});

test('a size may be octal with or without its NUL, base-256, or blank', () => {
  const size = (sizeField: string | Uint8Array) => decode(header({ sizeField }))?.bytes;
  expect(size('777777777777')).toBe(8 ** 12 - 1);
  expect(size('         17 ')).toBe(15);
  expect(size('17\0garbage\0')).toBe(15);
  expect(size('            ')).toBe(0);
  expect(size(Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 2, 0x40, 0, 0, 1))).toBe(9 * 2 ** 30 + 1);
});

test('a negative size, a size that is not a number, and a wrong checksum throw errors with the offset', () => {
  const minusOne = new Uint8Array(12).fill(0xff);
  for (const fields of [{ sizeField: minusOne }, { sizeField: '-0000000001' }, { sizeField: '000008' }]) {
    expect(() => decode(header(fields))).toThrowError(DamagedShardError);
    expect(() => decode(header(fields))).toThrowError(/a\.tar.*byte 4096.*size/);
  }
  expect(() => decode(header({ sizeField: minusOne }))).toThrowError('negative size (-1)');
  expect(() => decode(header({ checksumField: '000001\0 ' }))).toThrowError(/byte 4096.*checksum/);
});

test('the prefix belongs to the name in ustar only', () => {
  expect(decode(header({ name: 'b.jpg', prefix: 'a' }))?.name).toBe('a/b.jpg');
  expect(decode(header({ name: 'b.jpg', prefix: '12345', magic: 'gnu' }))?.name).toBe('b.jpg');
  expect(decode(header({ name: 'b.jpg', prefix: 'x', magic: 'v7' }))?.name).toBe('b.jpg');
  expect(decode(header({ name: 'n'.repeat(100), prefix: 'p'.repeat(155) }))?.name).toHaveLength(256);
  // As in star, with times at the end.
  const star = header({ name: 'b.jpg', prefix: `${'p'.repeat(131)}00000000000 00000000000 ${'\0'.repeat(8)}tar` });
  expect(decode(star)?.name).toBe(`${'p'.repeat(131)}/b.jpg`);
});

test('the types NUL and 7 are plain files like the type 0', () => {
  for (const type of ['\0', '7', '0']) expect(decode(header({ type }))?.type).toBe('0');
});

test('a name or prefix that is not UTF-8 is read as missing, because a record may contain the full name', () => {
  expect(decode(header({ name: Uint8Array.of(0xe9, 0x2e, 0x6a) }))?.name).toBeNull();
  expect(decode(header({ name: 'a.jpg', prefix: Buffer.from('図').subarray(0, 2) }))?.name).toBeNull();
});

test('a changed byte is detected by the checksum or leaves a readable header', () => {
  const block = header({ name: 'a/b.jpg', size: 1000 });
  fc.assert(
    fc.property(fc.nat({ max: 511 }), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const changed = Buffer.from(block);
      changed[at] = changed[at]! ^ change;
      try {
        decode(changed);
      } catch (error) {
        expect(error).toBeInstanceOf(ShardtoolError);
      }
    }),
  );
});

test('random blocks give a header, nothing, or a ShardtoolError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 512, maxLength: 512 }), fc.boolean(), (bytes, fixChecksum) => {
      const block = Buffer.from(bytes);
      if (fixChecksum) {
        block.fill(0x20, 148, 156);
        block.write(`${block.reduce((sum, byte) => sum + byte, 0).toString(8)}\0`, 148, 'latin1');
      }
      try {
        decode(block);
      } catch (error) {
        expect(error).toBeInstanceOf(ShardtoolError);
      }
    }),
  );
});

test('payloads of any size are padded to whole blocks', () => {
  expect([0, 1, 511, 512, 513].map(padded)).toEqual([0, 512, 512, 512, 1024]);
  expect(padded(2 ** 40 + 1)).toBe(2 ** 40 + 512);
});
