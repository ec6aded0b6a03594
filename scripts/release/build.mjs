/**
 * Builds everything that is published, from the last commit only: tarballs for npm, wheels, the sdist, a bill of materials
 * (CycloneDX) and SHA256SUMS. A person publishes them (docs/maintaining.md).
 *
 *   npm run release:build                       into release/
 *   npm run release:build -- --check            twice, and compares: equal bytes
 *   npm run release:build -- --platforms linux-x64,linux-arm64
 *   npm run release:build -- --repository https://github.com/owner/name
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bill } from './bill.mjs';
import { nameRepository } from './repository.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Packages, each after its dependencies. */
const PACKAGES = ['base', 'storage', 'format', 'reader', 'cuda', 'writer', 'cli'];
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'release' },
    platforms: { type: 'string', default: 'linux-x64,linux-arm64,darwin-x64,darwin-arm64' },
    python: { type: 'string', default: process.env.SHARDTOOL_RELEASE_PYTHON ?? 'python3' },
    check: { type: 'boolean', default: false },
    repository: { type: 'string' },
  },
});
const out = path.resolve(values.out);
if (existsSync(out) && !existsSync(path.join(out, 'SHA256SUMS')) && readdirSync(out).length > 0) {
  console.error(`${out} has files that no earlier build made: move them away, or choose another folder with --out.`);
  process.exit(2);
}
if (values.repository === undefined)
  console.error('Without --repository, the packages have no links to their source and issues.');
rmSync(out, { recursive: true, force: true });
make(out);
if (values.check) {
  const again = mkdtempSync(path.join(os.tmpdir(), 'shardtool-again-'));
  make(again);
  const sums = [out, again].map((folder) => readFileSync(path.join(folder, 'SHA256SUMS'), 'utf8').split('\n'));
  rmSync(again, { recursive: true });
  const other = sums[0].filter((line) => !sums[1].includes(line));
  if (other.length > 0 || sums[0].length !== sums[1].length) {
    console.error(`Two builds differ:\n${other.join('\n')}`);
    process.exit(1);
  }
  console.log(`Two builds are equal: ${sums[0].length - 1} files.`);
}

/** Builds the last commit in a temporary folder, and writes the files to publish to `target`. */
function make(target) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shardtool-release-'));
  try {
    const archive = path.join(folder, 'commit.tar');
    const checkout = path.join(folder, 'checkout');
    mkdirSync(checkout);
    run('git', ['archive', '--output', archive, 'HEAD'], root);
    run('tar', ['xf', archive, '-C', checkout], folder);
    if (values.repository !== undefined) nameRepository(checkout, PACKAGES, values.repository);
    run('npm', ['run', '--silent', 'setup'], checkout);
    run('npm', ['run', '--silent', 'build'], checkout);
    const tarballs = path.join(target, 'npm');
    mkdirSync(tarballs, { recursive: true });
    for (const name of PACKAGES) {
      run(
        'npm',
        ['pack', '--silent', '--ignore-scripts', '--pack-destination', tarballs],
        path.join(checkout, 'packages', name),
      );
    }
    makePython(path.join(checkout, 'python'), tarballs, path.join(target, 'python'), folder);
    writeFileSync(path.join(target, 'sbom.cdx.json'), bill(checkout, PACKAGES));
    writeFileSync(path.join(target, 'SHA256SUMS'), sumsOf(target));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Builds the sdist and the wheels from these same tarballs. */
function makePython(source, tarballs, target, folder) {
  mkdirSync(target, { recursive: true });
  cpSync(tarballs, path.join(source, 'tarballs'), { recursive: true });
  const venv = path.join(folder, 'venv');
  run(values.python, ['-m', 'venv', venv], folder);
  const python = path.join(venv, 'bin/python');
  run(python, ['-m', 'pip', 'install', '--quiet', 'hatchling==1.27.0'], folder);
  const build = (kind, environment) =>
    run(
      python,
      ['-c', `import hatchling.build, sys; hatchling.build.build_${kind}(sys.argv[1])`, target],
      source,
      environment,
    );
  build('sdist', {});
  for (const platform of values.platforms.split(',')) build('wheel', { SHARDTOOL_WHEEL_PLATFORM: platform });
}

function sumsOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort()
    .map(
      (file) =>
        `${createHash('sha256')
          .update(readFileSync(path.join(folder, file)))
          .digest('hex')}  ${file}\n`,
    )
    .join('');
}

/** Runs a command with the time of the commit as SOURCE_DATE_EPOCH. */
function run(command, words, cwd, environment = {}) {
  const time = execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim();
  const stdio = ['ignore', 'inherit', 'inherit'];
  execFileSync(command, words, { cwd, stdio, env: { ...process.env, SOURCE_DATE_EPOCH: time, ...environment } });
}
