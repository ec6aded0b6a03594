/**
 * Runs the benches that do not compare with other software, one after the other.
 *
 *   npm run bench [-- NAME...]                        without names, all of them
 *   npm run bench -- --against CHECKOUT [NAME...]     each in turn with the packages of another checkout that has been built
 *
 * `--rounds 7` with --against: number of runs of each bench with both.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runAgainst } from './against.mjs';
import { makePhotos } from './make-photos.mjs';

const folder = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(folder, '.cache');
const files = path.join(cache, 'copies-30000');
const shards = path.join(cache, 'shards-30000');

/** `args`: arguments for the figures of bench/README.md. `turn`: arguments of a shorter run, with --against. */
const BENCHES = {
  pack: { script: 'pack.mjs', turn: ['--count', '10000', '--rounds', '1', '--disk', '', '--tiny', '0'] },
  formats: { script: 'formats.mjs', args: [files] },
  'files-vs-shards': { script: 'files-vs-shards.mjs', turn: ['--rounds', '1'] },
  order: { script: 'order.mjs' },
  kernel: { script: 'kernel.mjs' },
  // Otherwise a bench of `npm run bench:peers`.
  loader: {
    script: 'peers/shardtool.mjs',
    isPeer: true,
    turn: ['--shards', shards, '--variant', 'always', '--epochs', '1'],
  },
};

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { against: { type: 'string' }, rounds: { type: 'string', default: '7' } },
});
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(', ')}. Benches: ${Object.keys(BENCHES).join(', ')}.`);
  process.exit(2);
}
const chosen = Object.entries(BENCHES).filter(([name]) => wanted.length === 0 || wanted.includes(name));

await makePhotos({ count: 30_000, out: files, copies: true, log: console.error });
if (!existsSync(path.join(shards, 'dataset.json'))) {
  run(path.join(folder, '..', 'packages', 'cli', 'lib', 'main.js'), 'pack', files, shards, '--overwrite');
}
if (values.against !== undefined) {
  const benches = chosen.map(([name, { script, args = [], turn = args }]) => ({ name, script, args: turn }));
  runAgainst(values.against, benches, Number(values.rounds));
} else {
  for (const [name, { script, args = [], isPeer }] of chosen) {
    if (isPeer && !wanted.includes(name)) continue;
    console.log(`\n== ${name}`);
    run(path.join(folder, script), ...(isPeer ? BENCHES[name].turn : args));
  }
}

function run(script, ...given) {
  const { status } = spawnSync(process.execPath, [script, ...given], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
