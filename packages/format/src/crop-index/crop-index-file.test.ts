import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CropIndexError, crc32, VersionError } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CropIndexWriter, checkedCropIndex, cropIndexOf, openCropIndex } from './crop-index-file.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'shardtool-crops-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

type Row = { offset: number; bytes: number; crc32: number; made: Uint8Array | number } | null;

async function write(file: string, rows: readonly Row[]): Promise<void> {
  const writer = await CropIndexWriter.create(file);
  for (const row of rows) {
    if (row === null) writer.addNone();
    else writer.add(row, row.made);
  }
  await writer.finish();
}

const rows = fc.array(
  fc.option(
    fc.record({
      offset: fc.nat(2 ** 40),
      bytes: fc.nat(2 ** 31),
      crc32: fc.nat(2 ** 32 - 1),
      made: fc.oneof(fc.uint8Array({ minLength: 6, maxLength: 60 }), fc.integer({ min: 1, max: 13 })),
    }),
    { nil: null, freq: 5 },
  ),
  { maxLength: 30 },
);

test('rows are read back unchanged, each bound to its image', async () => {
  const file = path.join(folder, 'a.crops');
  await fc.assert(
    fc.asyncProperty(rows, async (written) => {
      await write(file, written);
      const { table, source } = await openCropIndex(file);
      expect(table.rows).toBe(written.length);
      for (const [i, row] of written.entries()) {
        expect(table.imageOffset[i]).toBe(row?.offset ?? -1);
        expect([table.imageBytes[i], table.imageCrc32[i]]).toEqual([row?.bytes ?? 0, row?.crc32 ?? 0]);
        const made = row?.made ?? 0;
        expect(table.refusal[i]).toBe(typeof made === 'number' ? made : 0);
        const stored = new Uint8Array(table.bytes[i]!);
        await source.readAt(table.offset[i]!, stored);
        expect(checkedCropIndex(stored, row?.crc32 ?? 0)).toEqual(typeof made === 'number' ? null : made);
        if (typeof made === 'number') continue;
        expect(cropIndexOf(stored)).toEqual(made);
        expect(checkedCropIndex(stored, (row!.crc32 + 1) >>> 0)).toBeNull();
      }
      await source.close();
    }),
    { numRuns: 40 },
  );
});

test('a table with a flipped bit, or a truncated table, is rejected', async () => {
  const file = path.join(folder, 'b.crops');
  await write(file, [{ offset: 512, bytes: 9000, crc32: 5, made: new Uint8Array(50).fill(7) }, null]);
  const whole = readFileSync(file);
  for (let place = 54; place < whole.length - 20; place += 3) {
    const bytes = Buffer.from(whole);
    bytes[place]! ^= 4;
    writeFileSync(file, bytes);
    await expect(openCropIndex(file)).rejects.toThrow(
      place >= whole.length - 32 && place < whole.length - 28 ? VersionError : CropIndexError,
    );
  }
  for (const length of [0, 10, 31, 60, whole.length - 1]) {
    writeFileSync(file, whole.subarray(0, length));
    await expect(openCropIndex(file)).rejects.toThrow('shardtool index --index crops');
  }
});

test('a file of a newer version is rejected with its version', async () => {
  const file = path.join(folder, 'c.crops');
  await write(file, []);
  const bytes = readFileSync(file);
  bytes.writeUInt32LE(2, bytes.length - 32);
  bytes.writeUInt32LE(crc32(bytes.subarray(-32, -24)), bytes.length - 24);
  writeFileSync(file, bytes);
  await expect(openCropIndex(file)).rejects.toThrow(VersionError);
});

test('an unfinished file is removed', async () => {
  const writer = await CropIndexWriter.create(path.join(folder, 'd.crops'));
  writer.add({ offset: 0, bytes: 10, crc32: 1 }, new Uint8Array(3));
  await writer.abandon();
  expect(readdirSync(folder).filter((name) => name.startsWith('d.'))).toEqual([]);
});
