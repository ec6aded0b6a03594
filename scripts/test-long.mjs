/**
 * Tests that take too long for `npm test`: those in test/long, those of Python marked `long`, many repetitions of tests with random
 * damage, kills and races, and property tests with new cases. docs/long-tests.md has the last results.
 *
 *   npm run test:long                                  every step, with a seed of the day
 *   npm run test:long -- --seed 7 --times 50 random    one step, with the cases of an earlier run, and 50 times the repetitions
 *   npm run test:long -- --only timm pages             only the tests of one step with this name; the page of results is not changed
 *
 * SHARDTOOL_PYTHON and SHARDTOOL_TORCH_PYTHON are paths of Pythons. Default: those that .ci/run makes. SHARDTOOL_TORCH2_PYTHON is a
 * Python with python/tests/frameworks-requirements.txt (.venv-torch2). SHARDTOOL_REFEREES are the paths, separated by ":", of Pythons
 * with datasets, tensorflow, h5py, mosaicml-streaming and litdata; tests of packages that none of them has are skipped.
 * SHARDTOOL_ENGINES_PYTHON is a Python with python/tests/engines-requirements.txt, pytest and Pillow (.venv-engines). The rows of the
 * steps in docs/long-tests.md are rewritten.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const today = new Date().toISOString().slice(0, 10);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Math.floor(Date.parse(today) / 86_400_000)) },
    times: { type: 'string' },
    only: { type: 'string' },
  },
});
const torchPython = process.env.SHARDTOOL_TORCH_PYTHON ?? '.venv-torch/bin/python';
const torch2Python = process.env.SHARDTOOL_TORCH2_PYTHON ?? '.venv-torch2/bin/python';
const PAGE = 'docs/long-tests.md';

/** Lists only these folders, because listing the installed packages of the checkout takes minutes. */
const testFiles = ['test', ...readdirSync('packages').map((name) => `packages/${name}/src`)].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
);
const withText = (text) =>
  testFiles.filter(
    (file) => /\.test\.ts$/.test(file) && !file.startsWith('test/long/') && readFileSync(file, 'utf8').includes(text),
  );
const vitest = (files, environment) => ({
  command: [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', ...files],
  environment: { SHARDTOOL_SEED: values.seed, ...environment },
});
/** A step with more repetitions of its tests. `usual`: their number without `--times`. */
const repeated = (files, usual, environment) => {
  const times = values.times ?? String(usual);
  return { times, ...vitest(files, { SHARDTOOL_TIMES: times, ...environment }) };
};

const STEPS = {
  long: {
    what: '`test/long`, the rest',
    ...vitest(
      ['crop-index', 'other-writers', 'site'].flatMap((name) => ['--exclude', `test/long/${name}.test.ts`]),
      { SHARDTOOL_LANE: 'long' },
    ),
  },
  crops: {
    what: 'crops with an index, 40,000 at a time, and damaged indexes, 4,000 at a time (`test/long/crop-index`)',
    ...repeated(['test/long/crop-index.test.ts'], 25, { SHARDTOOL_LANE: 'long' }),
  },
  referees: {
    what: 'comparison with writers and readers of other software (`test/long/other-writers`)',
    ...vitest(['test/long/other-writers.test.ts'], { SHARDTOOL_LANE: 'long' }),
  },
  site: {
    what: 'the site: every link and picture, its search (`test/long/site`)',
    ...vitest(['test/long/site.test.ts'], { SHARDTOOL_LANE: 'long' }),
  },
  foreign: {
    what: 'damaged files of other software, 100 cases per layout at a time (`test/foreign-damage`)',
    ...repeated(['test/foreign-damage.test.ts'], 100),
  },
  properties: {
    what: 'property tests',
    ...repeated(withText("from 'fast-check'"), 5),
  },
  random: {
    what: 'damage, kills and races',
    // A server that disappears is unreachable for 20 s. Files of other software have a separate step.
    ...repeated(
      withText("/repetitions.js'").filter((file) => file !== 'test/foreign-damage.test.ts'),
      25,
      { SHARDTOOL_GONE_MS: '20000' },
    ),
  },
  python: {
    what: 'wheels for other processors, the sdist',
    command: [torchPython, '-m', 'pytest', '-q', 'python', '-m', 'long'],
  },
  torch2: {
    what: 'torch 2 with its DataLoaders; training frameworks, their examples; transforms of other libraries',
    command: [
      torch2Python,
      ...['-m', 'pytest', '-q'],
      ...[
        'torch_dataset',
        'frameworks',
        'adapters',
        'adapter_batches',
        'lightning',
        'framework_examples',
        'timm_scripts',
        'foreign_transforms',
        'recipe_names',
        'repeats',
      ].map((name) => `python/tests/test_${name}.py`),
    ],
    environment: { SHARDTOOL_REQUIRE_TORCHDATA: '1' },
  },
  recipes: {
    what: 'published configurations of timm, torchvision, open_clip and DINO against the originals, on 300 images',
    command: [torch2Python, '-m', 'pytest', '-q', '-m', 'long', 'python/tests/test_published_recipes.py'],
  },
  engines: {
    what: 'Ray, Spark, Grain and JAX; the Dockerfile and the manifest of Kubernetes',
    command: [
      process.env.SHARDTOOL_ENGINES_PYTHON ?? '.venv-engines/bin/python',
      ...['-m', 'pytest', '-q', '-m', 'long'],
      ...['ray', 'spark', 'grain', 'cluster_files'].map((name) => `python/tests/test_${name}.py`),
    ],
  },
  pages: {
    what: 'pages "Use with X": fresh environments, their pip commands, code and programs',
    command: [torchPython, '-m', 'pytest', '-q', '-m', 'long', 'python/tests/test_page_commands.py'],
  },
  release: {
    what: 'the release, built twice with equal bytes, and installed in empty folders',
    command: [
      'sh',
      '-c',
      'out=$(mktemp -d) && "$0" scripts/release/build.mjs --check --out "$out" && "$0" scripts/release/try.mjs "$out"; ' +
        'done=$?; rm -rf "$out"; exit $done',
      process.execPath,
    ],
  },
};

if (values.only !== undefined && (positionals.length !== 1 || positionals[0] === 'release')) {
  console.error('--only chooses tests of one step: name a step of vitest or pytest, such as pages.');
  process.exit(2);
}
const unknown = positionals.filter((name) => !(name in STEPS));
if (unknown.length > 0) {
  console.error(`There is no step ${unknown.join(', ')}. Steps: ${Object.keys(STEPS).join(', ')}.`);
  process.exit(2);
}
const results = [];
for (const [name, step] of Object.entries(STEPS)) {
  if (positionals.length === 0 || positionals.includes(name)) results.push(run(name, step));
}
if (values.only === undefined) writeFileSync(PAGE, page(results));
process.exit(results.some(({ status }) => status !== 0) ? 1 : 0);

function run(name, { what, times, command: [program, ...args], environment }) {
  console.log(`== ${name}`);
  const report = path.join(os.tmpdir(), `shardtool-long-${process.pid}.json`);
  const start = performance.now();
  const { status } = spawnSync(program, [...args, ...chosen(args)], {
    stdio: 'inherit',
    env: { ...process.env, ...environment, SHARDTOOL_REPORT: report },
  });
  const minutes = (performance.now() - start) / 60_000;
  const tests = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null;
  rmSync(report, { force: true });
  return { what, times, status, minutes, passed: tests?.numPassedTests, failed: tests?.numFailedTests };
}

/** The option of the test runner for `--only`. */
function chosen(args) {
  if (values.only === undefined) return [];
  return args.includes('pytest') ? ['-k', values.only] : ['-t', values.only];
}

/** The page with new rows for these steps. The rows of all other steps are kept. */
function page(rows) {
  const { stdout } = spawnSync('git', ['log', '-1', '--format=%h'], { encoding: 'utf8' });
  const outcome = ({ status, passed, failed }) =>
    `${status === 0 ? 'passed' : '**failed**'}${passed === undefined ? '' : ` (${passed} passed, ${failed} failed)`}`;
  const machine = `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}`;
  const fresh = new Map(
    rows.map((row) => [
      row.what,
      `| ${row.what} | ${today} | ${stdout.trim()} | ${values.seed} | ${row.times ?? ''} | ${outcome(row)} | ${row.minutes.toFixed(1)} | ${machine} |`,
    ]),
  );
  const before = readFileSync(PAGE, 'utf8').split('\n');
  const table = Object.values(STEPS).map(
    ({ what }) =>
      fresh.get(what) ??
      before.find((line) => line.startsWith(`| ${what} |`)) ??
      `| ${what} | not run yet | | | | | | |`,
  );
  return [
    '# The last long tests',
    '',
    '`npm run test:long` runs the steps and writes this page; `npm run test:long -- NAME` runs one of them ' +
      `(${Object.keys(STEPS).join(', ')}).`,
    '',
    '| step | date | commit | seed | repetitions, factor | result | minutes | machine |',
    '|---|---|---|---:|---:|---|---:|---|',
    ...table,
    '',
  ].join('\n');
}
