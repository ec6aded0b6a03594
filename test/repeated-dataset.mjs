// A dataset of any number of samples that takes little disk space: the indexes are real, and their rows point to the same few images.
import { linkSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { createManifest, readManifest, readShardIndex, writeManifest, writeShardIndex } from '@shardtool/format';
import { pack } from '@shardtool/writer';

/**
 * Makes `folder`. Sample i is image i % n of the n images of `source`, of the same class, with the key CLASS/i. A shard has
 * `shardSamples` samples.
 */
export async function makeRepeatedDataset(folder, { source, samples, shardSamples }) {
  const once = path.join(folder, 'once');
  mkdirSync(folder, { recursive: true });
  await pack(source, once, { workers: 1, maxShardSamples: 1e6 });
  const index = await readShardIndex(path.join(once, '000000.parquet'));
  const manifest = await readManifest(once);
  const images = index.samples;
  const shards = [];
  for (let first = 0; first < samples; first += shardSamples) {
    const rows = Math.min(shardSamples, samples - first);
    const name = String(shards.length).padStart(6, '0');
    const imageOf = Int32Array.from({ length: rows }, (_, row) => (first + row) % images);
    // A loop: `from` with a function takes ten times as long.
    const repeated = (values) => {
      const all = new values.constructor(rows);
      for (let row = 0; row < rows; row++) all[row] = values[imageOf[row]];
      return all;
    };
    const fields = new Map(
      Array.from(index.fields, ([field, columns]) => [
        field,
        Object.fromEntries(Object.entries(columns).map(([part, values]) => [part, repeated(values)])),
      ]),
    );
    await writeShardIndex(path.join(folder, `${name}.parquet`), {
      samples: rows,
      key: Array.from(imageOf, (image, row) => `${manifest.classes[index.cls[image]].name}/${first + row}`),
      source: Array.from(imageOf, () => ''),
      offset: repeated(index.offset),
      bytes: repeated(index.bytes),
      fields,
      width: repeated(index.width),
      height: repeated(index.height),
      orientation: repeated(index.orientation),
      cls: repeated(index.cls),
      columns: new Map(),
    });
    linkSync(path.join(once, '000000.tar'), path.join(folder, `${name}.tar`));
    shards.push({ ...manifest.shards[0], file: `${name}.tar`, samples: rows });
  }
  const classes = manifest.classes.map(({ name }) => ({ name, samples: Math.ceil(samples / manifest.classes.length) }));
  const fields = manifest.fields.map(({ name }) => ({ name, samples }));
  await writeManifest(folder, createManifest({ format: 'tar', classes, fields, columns: [], shards }));
}
