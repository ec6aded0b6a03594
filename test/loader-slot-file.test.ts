import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { afterEach, expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';

const shards = await packedSmall({ samples: 60, classes: 2 });
const square = [{ name: 'resize', size: [32, 32] }] as const;
const open: number[] = [];

afterEach(() => {
  for (const file of open.splice(0)) closeSync(file);
});

/** An empty file that has no name any more. */
function namelessFile(flags = 'w+'): number {
  const name = path.join(emptyFolder(), 'slots');
  const file = openSync(name, 'w+');
  open.push(file);
  if (flags === 'w+') {
    rmSync(name);
    return file;
  }
  const again = openSync(name, flags);
  open.push(again);
  return again;
}

/** The bytes of the file at the offset of the batch's images. */
function inFile(file: number, { images }: Batch): Buffer {
  const bytes = Buffer.alloc(images!.byteLength);
  expect(readSync(file, bytes, 0, bytes.length, images!.byteOffset)).toBe(bytes.length);
  return bytes;
}

const bytesOf = ({ images }: Batch) => new Uint8Array(images!.buffer, images!.byteOffset, images!.byteLength);

test('each batch is the same in the file as in memory, also after the loader starts again', async () => {
  const file = namelessFile();
  await using dataset = await openDataset(shards);
  const transforms: Required<LoaderOptions>['transform'][] = [
    square,
    [...square, { name: 'toDtype', dtype: 'float32' }],
  ];
  for (const transform of transforms) {
    await using loader = dataset.loader({ batchSize: 7, workers: 2, reuse: true, slotFile: file, transform });
    for (let epoch = 0; epoch < 2; epoch++) {
      let images = 0;
      for await (const batch of loader) {
        expect(crc32(inFile(file, batch))).toBe(crc32(bytesOf(batch)));
        images += batch.size;
      }
      expect(images).toBe(60);
      await loader.close();
    }
  }
});

test('a batch that is held stays in the file after the loader has ended', async () => {
  const file = namelessFile();
  await using dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: 7, workers: 1, slotFile: file, reuse: 'manual', transform: square });
  let place = { offset: 0, bytes: 0, sum: 0 };
  for await (const batch of loader) {
    place = { offset: batch.images!.byteOffset, bytes: batch.images!.byteLength, sum: crc32(bytesOf(batch)) };
    break;
  }
  await loader.close();
  const bytes = Buffer.alloc(place.bytes);
  readSync(file, bytes, 0, place.bytes, place.offset);
  expect(crc32(bytes)).toBe(place.sum);
});

test('batches that are held stay in the file during the loops that follow a loop that was left', async () => {
  const file = namelessFile();
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({
    batchSize: 7,
    workers: 1,
    prefetchBatches: 5,
    slotFile: file,
    reuse: 'manual',
    transform: square,
  });
  const held: { batch: Batch; sum: number }[] = [];
  for (let loop = 0; loop < 8; loop++) {
    for await (const batch of loader) {
      held.push({ batch, sum: crc32(inFile(file, batch)) });
      if (batch.index < 2) continue;
      held.shift()!.batch.release();
      break;
    }
    while (held.length > 1) held.shift()!.batch.release();
    for (const { batch, sum } of held) expect(crc32(inFile(file, batch))).toBe(sum);
  }
});

test('the file is only as large as the slots', async () => {
  const file = namelessFile();
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({
    batchSize: 7,
    workers: 1,
    reuse: true,
    slotFile: file,
    prefetchBatches: 3,
    transform: square,
  });
  for await (const batch of loader) if (batch.index === 0) break;
  const { slotBytes } = await loader.info();
  expect(fstatSync(file).size).toBeGreaterThanOrEqual(slotBytes);
  expect(fstatSync(file).size).toBeLessThan(slotBytes + 2 * 65_536);
});

test('the error for an invalid file, or one that cannot be written, states the reason', async () => {
  await using dataset = await openDataset(shards);
  for (const [file, reason] of [
    [namelessFile('r'), /file descriptor \d+ \(EINVAL/],
    [100_000, /file descriptor 100000 \(EBADF/],
  ] as const) {
    await using loader = dataset.loader({ workers: 1, reuse: true, slotFile: file, transform: square });
    await expect(loader[Symbol.asyncIterator]().next()).rejects.toThrow(reason);
  }
});
