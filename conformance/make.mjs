/**
 * Makes the datasets of the suite, and the contents that a reader must find in them:
 *
 *   node conformance/make.mjs
 *
 * The suite is part of version 1.0 of the format (docs/format.md), so its files never change. Run this only after adding a
 * dataset to DATASETS. It does not change existing datasets.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { found } from './found.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const images = path.join(here, '../test/fixtures/earlier/source');

/** Options with which each dataset is packed, by its name. */
const DATASETS = {
  tar: { name: 'train' },
  msgpack: { format: 'msgpack' },
  lmdb: { format: 'lmdb' },
  'lmdb-images': { format: 'lmdb', lmdbValues: 'image', fields: [], exclude: ['**/*.{json,txt,seg.png}'] },
  'one-shard': { maxShardSamples: 1000 },
};

/** Makes the folder of images, with names and columns that are difficult for a reader. Returns the labels file. */
function makeSource(folder) {
  cpSync(images, folder, { recursive: true });
  rmSync(path.join(folder, 'dog/bad.png'));
  const keys = readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith('.png') && !file.endsWith('.seg.png'))
    .map((file) => file.slice(0, -4))
    .sort();
  // A name too long for ustar, which is stored in a pax header, and letters of two and four bytes in UTF-8.
  const renamed = { 'cat/00': `cat/${'long-'.repeat(30)}name`, 'dog/01': 'dog/größer 🐕' };
  const lines = ['path,score,count,checked,note'];
  for (const [i, key] of keys.entries()) {
    const name = renamed[key] ?? key;
    for (const field of ['png', 'seg.png', 'json', 'txt']) {
      const file = path.join(folder, `${key}.${field}`);
      if (!existsSync(file) || name === key) continue;
      cpSync(file, path.join(folder, `${name}.${field}`));
      rmSync(file);
    }
    // msgpack stores the text of an integer as an integer, but not other digits.
    writeFileSync(path.join(folder, `${name}.txt`), ['17', '017', '-3', '4294967296', 'text', ''][i % 6]);
    const score = i % 5 === 0 ? '' : (i - 10) / 4;
    const count = i % 7 === 0 ? '' : (i - 12) * 2 ** 40;
    lines.push(`"${name}.png",${score},${count},${i % 3 === 0 ? '' : i % 2 === 0},${i % 4 === 0 ? '' : `"odd, ${i}"`}`);
  }
  return lines.join('\n');
}

const work = mkdtempSync(path.join(tmpdir(), 'conformance-'));
try {
  const source = path.join(work, 'source');
  const labels = path.join(work, 'labels.csv');
  writeFileSync(labels, makeSource(source));
  for (const [name, options] of Object.entries(DATASETS)) {
    const folder = path.join(here, name);
    if (existsSync(folder)) continue;
    const target = path.join(folder, 'dataset');
    mkdirSync(folder);
    await pack(source, target, { labels, fields: ['seg.png'], maxShardSamples: 7, seed: 3, ...options });
    // Notes of the writer, which contain paths of this machine.
    rmSync(path.join(target, 'pack.json'));
    const dataset = await openDataset(target);
    writeFileSync(path.join(folder, 'expected.json'), `${JSON.stringify(await found(dataset), null, 1)}\n`);
    await dataset.close();
    console.log(`Made ${name}.`);
  }
} finally {
  rmSync(work, { recursive: true });
}
