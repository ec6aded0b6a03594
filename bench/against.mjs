/**
 * Runs the benches of this tree in turn with its own packages and with those of another checkout, and compares the figures.
 * Both run the same scripts: a copy of this folder is placed next to links to the other checkout's packages.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './peers/measure.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Runs each of `benches` ({ name, script, args }) `rounds` times in each tree and prints a table: medians, and the median and
 * range of the ratios within a round. The trees alternate in running first. A ratio above 1 means that this tree is better.
 */
export function runAgainst(checkout, benches, rounds = 7) {
  const other = treeWith(path.resolve(checkout));
  try {
    console.log(
      `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}, ${rounds} rounds\n`,
    );
    console.log(`| figure | here | ${path.resolve(checkout)} | ratio | from | to |\n|---|---:|---:|---:|---:|---:|`);
    for (const bench of benches) printRows(bench.name, takeTurns(bench, other, rounds));
  } finally {
    fs.rmSync(other, { recursive: true, force: true });
  }
}

/** Makes a tree with the benches of this checkout and the packages of `checkout`, which has been built. */
function treeWith(checkout) {
  const tree = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-against-'));
  for (const name of ['packages', 'node_modules']) fs.symlinkSync(path.join(checkout, name), path.join(tree, name));
  fs.symlinkSync(path.join(root, 'examples'), path.join(tree, 'examples'));
  const cache = path.join(root, 'bench/.cache');
  fs.mkdirSync(cache, { recursive: true });
  fs.cpSync(path.join(root, 'bench'), path.join(tree, 'bench'), {
    recursive: true,
    filter: (file) => path.basename(file) !== '.cache',
  });
  fs.symlinkSync(cache, path.join(tree, 'bench/.cache'));
  const { imports: _, ...rest } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const found = innerModules(path.join(tree, 'bench')).flatMap(([name, file]) => {
    const there = findModule(checkout, file);
    return there === null ? [] : [[name, there]];
  });
  fs.writeFileSync(path.join(tree, 'package.json'), JSON.stringify({ ...rest, imports: Object.fromEntries(found) }));
  return tree;
}

/** The names under which benches import inner modules, and the file of each. */
function innerModules(folder) {
  const scripts = fs.readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.mjs'));
  const names = scripts.flatMap((file) => [
    ...fs.readFileSync(path.join(folder, file), 'utf8').matchAll(/from '(#(\w+)\/([^']+))'/g),
  ]);
  return names.map(([, name, folderOf, module]) => [name, `./packages/${folderOf}/dist/${module}.js`]);
}

/** The path of an inner module in that checkout: the same path, or that of the only file of this name in its package. */
function findModule(checkout, file) {
  if (fs.existsSync(path.join(checkout, file))) return file;
  const dist = file.split('/').slice(0, 4).join('/');
  const folder = path.join(checkout, dist);
  if (!fs.existsSync(folder)) return null;
  const same = fs
    .readdirSync(folder, { recursive: true })
    .filter((other) => path.basename(other) === path.basename(file));
  return same.length === 1 ? `${dist}/${same[0]}` : null;
}

/** Figures by name: { isRate, here, there }, with one value per round in both lists. */
function takeTurns({ name, script, args }, other, rounds) {
  const figures = new Map();
  for (let round = 0; round < rounds; round++) {
    const turns = [
      ['here', root],
      ['there', other],
    ];
    if (round % 2 === 1) turns.reverse();
    for (const [side, tree] of turns) {
      for (const { name: figure, value, isRate } of run(tree, script, args)) {
        if (!figures.has(figure)) figures.set(figure, { isRate, here: [], there: [] });
        figures.get(figure)[side].push(value);
      }
    }
    console.error(`${name}: round ${round + 1} of ${rounds}`);
  }
  return figures;
}

function run(tree, script, args) {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-figures-')), 'figures');
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [path.join(tree, 'bench', script), ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: { ...process.env, SHARDTOOL_FIGURES: file },
  });
  const lines = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : [];
  fs.rmSync(path.dirname(file), { recursive: true, force: true });
  if (status !== 0) throw new Error(`${script} in ${tree} ended with ${status ?? signal}:\n${stderr || stdout}`);
  if (lines.length === 0)
    throw new Error(`${script} reported no figures: it has to call rate() or cost() of figures.mjs.`);
  return lines.map((line) => JSON.parse(line));
}

function printRows(bench, figures) {
  for (const [name, { isRate, here, there }] of figures) {
    const ratios = here.map((value, round) => (isRate ? value / there[round] : there[round] / value));
    const cells = [median(here), median(there), median(ratios), Math.min(...ratios), Math.max(...ratios)];
    console.log(`| ${bench}: ${name} | ${cells.map((value) => Number(value.toPrecision(3))).join(' | ')} |`);
  }
}
