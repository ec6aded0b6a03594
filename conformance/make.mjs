/**
 * Makes the datasets of the suite and what a reader has to find in them:
 *
 *   node conformance/make.mjs
 *
 * The suite is part of version 1.0 of the format (docs/format.md): files that are here do not change any more. Run this only to
 * add a dataset to DATASETS; it leaves existing ones as they are.
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

/** Packed with these options, by name. */
const DATASETS = {
  tar: { name: 'train' },
  msgpack: { format: 'msgpack' },
  lmdb: { format: 'lmdb' },
  'lmdb-images': { format: 'lmdb', lmdbValues: 'image', fields: [], exclude: ['**/*.{json,txt,seg.png}'] },
  'one-shard': { maxShardSamples: 1000 },
};

/** Folder of the images, with names and columns that a reader may trip over. Returns the labels file. */
function makeSource(folder) {
  cpSync(images, folder, { recursive: true });
  rmSync(path.join(folder, 'dog/bad.png'));
  const keys = readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith('.png') && !file.endsWith('.seg.png'))
    .map((file) => file.slice(0, -4))
    .sort();
  // Longer than a name in ustar, so it is stored in a pax header; and letters that are two and four bytes in UTF-8.
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
    // The text of an integer is stored as one in msgpack, other digits are not.
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
    // Notes of the writer, which name this machine's folders.
    rmSync(path.join(target, 'pack.json'));
    const dataset = await openDataset(target);
    writeFileSync(path.join(folder, 'expected.json'), `${JSON.stringify(await found(dataset), null, 1)}\n`);
    await dataset.close();
    console.log(`${name} is made.`);
  }
} finally {
  rmSync(work, { recursive: true });
}
