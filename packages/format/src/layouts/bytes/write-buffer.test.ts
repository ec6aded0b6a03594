import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { FileError } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { WriteBuffer } from './write-buffer.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-buffer-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('the file contains exactly the appended pieces, and its checksum is the same with and without known checksums of parts', () => {
  const piece = fc.record({ bytes: fc.oneof(fc.nat(300), fc.nat(3 << 20)), kept: fc.boolean(), known: fc.boolean() });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const path = join(folder, 'pieces');
      const fd = openSync(path, 'w');
      const output = new WriteBuffer(fd, 'pieces');
      const wanted: Buffer[] = [];
      for (const [i, { bytes, kept, known }] of pieces.entries()) {
        const room = output.room(bytes + 10).fill(i + 1);
        if (!kept) continue;
        expect(output.position).toBe(wanted.reduce((sum, { length }) => sum + length, 0));
        const summed = { offset: 5, bytes: bytes - 5, crc32: crc32(room.subarray(5, bytes)) };
        output.append(bytes, known && bytes > 5 ? [summed] : []);
        wanted.push(Buffer.alloc(bytes, i + 1));
      }
      output.flush();
      closeSync(fd);
      const file = readFileSync(path);
      expect(file.equals(Buffer.concat(wanted))).toBe(true);
      expect(output.crc32).toBe(crc32(file));
    }),
    { numRuns: 30 },
  );
});

test.runIf(process.platform === 'linux')('a full disk throws an error with a remedy', () => {
  const fd = openSync('/dev/full', 'w');
  const output = new WriteBuffer(fd, '000000.lmdb');
  output.append(output.room(10).length);
  expect(() => output.flush()).toThrow(FileError);
  expect(() => output.flush()).toThrow('000000.lmdb cannot be written: no space left on the disk; free');
  closeSync(fd);
});
