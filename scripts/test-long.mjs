/**
 * What is too long for `npm test`: the tests in test/long and those of Python marked `long`, all that is damaged, killed or raced
 * at random done many times, and property tests with other cases than ever. Its last result stands in docs/long-tests.md.
 *
 *   npm run test:long                                  every step, with a seed of the day
 *   npm run test:long -- --seed 7 --times 50 random    one step, with the cases of a run before
 *
 * SHARDTOOL_PYTHON and SHARDTOOL_TORCH_PYTHON name the Pythons; default: those that .ci/run makes. A run of all steps writes
 * docs/long-tests.md.
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
    times: { type: 'string', default: '25' },
  },
});
const torchPython = process.env.SHARDTOOL_TORCH_PYTHON ?? '.venv-torch/bin/python';

const withText = (text) =>
  readdirSync('.', { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      /^(test|packages\/\w+\/src)\/.*\.test\.ts$/.test(file) &&
      !/^test\/long\/|node_modules/.test(file) &&
      readFileSync(file, 'utf8').includes(text),
  );
const vitest = (files, environment) => ({
  command: [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', ...files],
  environment: { SHARDTOOL_SEED: values.seed, ...environment },
});

const STEPS = {
  long: { what: '`test/long`', ...vitest([], { SHARDTOOL_LANE: 'long' }) },
  properties: {
    what: 'property tests',
    ...vitest(withText("from 'fast-check'"), { SHARDTOOL_TIMES: '5' }),
  },
  random: {
    what: `damage, kills and races, ${values.times} times as often`,
    ...vitest(withText("/repetitions.js'"), { SHARDTOOL_TIMES: values.times }),
  },
  python: {
    what: 'wheels for other processors, the sdist',
    command: [torchPython, '-m', 'pytest', '-q', 'python', '-m', 'long'],
  },
};

const unknown = positionals.filter((name) => !(name in STEPS));
if (unknown.length > 0) {
  console.error(`There is no step ${unknown.join(', ')}; there are ${Object.keys(STEPS).join(', ')}.`);
  process.exit(2);
}
const results = [];
for (const [name, step] of Object.entries(STEPS)) {
  if (positionals.length === 0 || positionals.includes(name)) results.push(run(name, step));
}
if (positionals.length === 0) writeFileSync('docs/long-tests.md', page(results));
process.exit(results.some(({ status }) => status !== 0) ? 1 : 0);

function run(name, { what, command: [program, ...args], environment }) {
  console.log(`== ${name}`);
  const report = path.join(os.tmpdir(), `shardtool-long-${process.pid}.json`);
  const start = performance.now();
  const { status } = spawnSync(program, args, {
    stdio: 'inherit',
    env: { ...process.env, ...environment, SHARDTOOL_REPORT: report },
  });
  const minutes = (performance.now() - start) / 60_000;
  const tests = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null;
  rmSync(report, { force: true });
  return { what, status, minutes, passed: tests?.numPassedTests, failed: tests?.numFailedTests };
}

function page(rows) {
  const { stdout } = spawnSync('git', ['log', '-1', '--format=%h'], { encoding: 'utf8' });
  const outcome = ({ status, passed, failed }) =>
    `${status === 0 ? 'passed' : '**failed**'}${passed === undefined ? '' : ` (${passed} passed, ${failed} failed)`}`;
  return [
    '# The last long tests',
    '',
    `\`npm run test:long\` on ${today}, commit ${stdout.trim()}, seed ${values.seed}: ${os.cpus()[0].model}, ` +
      `${os.availableParallelism()} cores, Node ${process.version}. The script writes this page.`,
    '',
    '| step | result | minutes |',
    '|---|---|---:|',
    ...rows.map((row) => `| ${row.what} | ${outcome(row)} | ${row.minutes.toFixed(1)} |`),
    '',
  ].join('\n');
}
