// A dataset whose shards are holes in the disk: indexes are real, payloads are zeros. Any number of samples is made in seconds.
import { existsSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import { createManifest, writeManifest, writeShardIndex } from '@shardtool/format';

const imageBytes = 400;
const spanBytes = 2048;

/**
 * `classes`: number of classes, assigned to samples in turn. `sizeOf`: [width, height] of a sample by its number. `columns`:
 * values of label columns by the number of a sample, such as `{ score: { type: 'double', of: (number) => number / 7 } }`.
 * Shards that exist are not made again, so that an interrupted call can be repeated.
 */
export async function makeSparseDataset(
  folder,
  { samples, shardSamples, classes = 1, sizeOf = () => [500, 375], columns = {} },
) {
  const shards = [];
  const sum = crc32(new Uint8Array(imageBytes));
  for (let first = 0; first < samples; first += shardSamples) {
    const rows = Math.min(shardSamples, samples - first);
    const name = String(shards.length).padStart(6, '0');
    shards.push({
      file: `${name}.tar`,
      bytes: rows * spanBytes,
      samples: rows,
      crc32: '00000000',
      maxSampleBytes: spanBytes,
    });
    const file = path.join(folder, `${name}.tar`);
    if (existsSync(file)) continue;
    const place = (at) => Float64Array.from({ length: rows }, (_, row) => row * spanBytes + at);
    const side = (at) => Int32Array.from({ length: rows }, (_, row) => sizeOf(first + row)[at]);
    const cls = Int32Array.from({ length: rows }, (_, row) => (first + row) % classes);
    const keys = Array.from({ length: rows }, (_, row) => keyOf(first + row));
    await writeShardIndex(path.join(folder, `${name}.parquet`), {
      samples: rows,
      key: keys,
      source: keys.map((key) => `${key}.JPEG`),
      offset: place(0),
      bytes: new Float64Array(rows).fill(spanBytes),
      fields: new Map([
        [
          'cls',
          {
            offset: place(512),
            bytes: new Float64Array(rows).fill(1),
            crc32: new Uint32Array(rows).fill(crc32(new Uint8Array(1))),
          },
        ],
        [
          'jpg',
          {
            offset: place(1536),
            bytes: new Float64Array(rows).fill(imageBytes),
            crc32: new Uint32Array(rows).fill(sum),
          },
        ],
      ]),
      width: side(0),
      height: side(1),
      orientation: new Uint8Array(rows).fill(1),
      cls,
      columns: new Map(
        Object.entries(columns).map(([column, { of }]) => [
          column,
          Array.from({ length: rows }, (_, row) => of(first + row)),
        ]),
      ),
      columnTypes: new Map(Object.entries(columns).map(([column, { type }]) => [column, type])),
    });
    writeFileSync(file, '');
    truncateSync(file, rows * spanBytes);
  }
  const columnList = Object.entries(columns).map(([name, { type }]) => ({ name, type }));
  const fields = ['cls', 'jpg'].map((name) => ({ name, samples }));
  const classList = Array.from({ length: classes }, (_, cls) => ({
    name: `class ${cls}`,
    samples: Math.floor(samples / classes) + (cls < samples % classes ? 1 : 0),
  }));
  await writeManifest(
    folder,
    createManifest({ format: 'tar', classes: classList, fields, columns: columnList, shards }),
  );
}

/** A key like ImageNet's. Consecutive samples have different classes, so the shards are not sorted by key. */
export function keyOf(number) {
  const mixed = (number * 7_919_993) % 2 ** 31;
  return `n${String(1440764 + (mixed % 1000)).padStart(8, '0')}/n${mixed % 1000}_${number}`;
}
