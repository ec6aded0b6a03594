// Every figure of bench/README.md except those against other loaders (npm run bench:peers), one after the other.
// Usage: npm run bench [-- NAME...]; without names all of them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { makePhotos } from './make-photos.mjs';

const folder = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(folder, '.cache');
const files = path.join(cache, 'copies-30000');
const shards = path.join(cache, 'shards-30000');

const BENCHES = {
  pack: ['pack.mjs'],
  raw: ['raw.mjs', shards],
  open: ['open.mjs'],
  lookup: ['lookup.mjs'],
  formats: ['formats.mjs', files],
  'files-vs-shards': ['files-vs-shards.mjs'],
  order: ['order.mjs'],
  kernel: ['kernel.mjs'],
  decode: ['decode.mjs'],
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}.`);
  process.exit(2);
}

await makePhotos({ count: 30_000, out: files, copies: true, log: console.error });
if (!existsSync(path.join(shards, 'dataset.json'))) {
  run(path.join(folder, '..', 'packages', 'cli', 'lib', 'main.js'), 'pack', files, shards, '--overwrite');
}
for (const [name, [script, ...given]] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`\n== ${name}`);
  run(path.join(folder, script), ...given);
}

function run(script, ...given) {
  const { status } = spawnSync(process.execPath, [script, ...given], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
