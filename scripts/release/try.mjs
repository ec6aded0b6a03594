/**
 * Installs each file that scripts/release/build.mjs made in an empty folder, and uses it without a network, and with nothing else
 * on the PATH (except Node for npm's tarballs).
 *
 *   node scripts/release/try.mjs release
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const photos = fileURLToPath(new URL('../../examples/photos', import.meta.url));
const release = path.resolve(process.argv[2] ?? 'release');
const python = process.env.SHARDTOOL_RELEASE_PYTHON ?? 'python3';
const root = mkdtempSync(path.join(os.tmpdir(), 'shardtool-try-'));
/** Command that runs a process without a network, if the system allows it. */
const ALONE = spawnSync('unshare', ['-rn', 'true']).status === 0 ? ['unshare', '-rn'] : [];
const filesIn = (part, end) =>
  readdirSync(path.join(release, part))
    .filter((file) => file.endsWith(end))
    .map((file) => path.join(release, part, file));

try {
  tryTarballs();
  for (const file of [wheelOfHere(), ...filesIn('python', '.tar.gz')]) tryPython(file);
} finally {
  rmSync(root, { recursive: true, force: true });
}

function wheelOfHere() {
  // Linux and macOS both have wheels for x86_64, and pip rejects those of the other system.
  const system = { linux: 'linux', darwin: 'macosx' }[process.platform];
  const machine = { x64: /_x86_64\.whl$/, arm64: /_(aarch64|arm64)\.whl$/ }[process.arch];
  const wheel = filesIn('python', '.whl').find((file) => machine?.test(file) && path.basename(file).includes(system));
  if (wheel) return wheel;
  throw new Error(`${release} has no wheel for ${process.platform}-${process.arch}: build it with --platforms.`);
}

function tryTarballs() {
  const folder = path.join(root, 'npm');
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', ...filesIn('npm', '.tgz')], { cwd: folder });
  const tool = [process.execPath, path.join(folder, 'node_modules/shardtool/lib/main.js')];
  useTool(folder, tool);
  const program = [
    "import { openDataset } from 'shardtool';",
    "const dataset = await openDataset('shards');",
    'let rows = 0;',
    "for await (const { labels } of dataset.loader({ batchSize: 20, transform: 'train224' })) rows += labels.length;",
    'await dataset.close();',
    'console.log(rows);',
  ];
  writeFileSync(path.join(folder, 'program.mjs'), program.join('\n'));
  expect(alone(folder, [process.execPath, 'program.mjs']), '60');
  console.log('npm: the tarballs work.');
}

function tryPython(file) {
  const folder = mkdtempSync(path.join(root, 'python-'));
  const venv = path.join(folder, 'venv');
  execFileSync(python, ['-m', 'venv', venv]);
  execFileSync(path.join(venv, 'bin/python'), ['-m', 'pip', 'install', '--quiet', file]);
  useTool(folder, [path.join(venv, 'bin/shardtool')]);
  const program =
    'import shardtool\nwith shardtool.Loader("shards", batch_size=20, transform="train224", output="numpy") as loader:\n' +
    '    print(sum(len(images) for images, labels in loader))';
  expect(alone(folder, [path.join(venv, 'bin/python'), '-c', program]), '60');
  console.log(`python: ${path.basename(file)} works.`);
}

function useTool(folder, tool) {
  alone(folder, [...tool, 'pack', photos, 'shards', '--quiet']);
  expect(alone(folder, [...tool, 'ls', 'shards']), '60 samples');
  expect(alone(folder, [...tool, 'verify', 'shards', '--check', 'decode']), 'OK, all checksums match');
}

/** Runs a command in an empty environment, and returns its output. */
function alone(folder, command) {
  const [program, ...words] = [...ALONE, 'env', '-i', 'PATH=/nonexistent', 'HOME=/nonexistent', ...command];
  return execFileSync(program, words, { cwd: folder, encoding: 'utf8' });
}

function expect(printed, text) {
  if (!printed.includes(text)) throw new Error(`Expected ${JSON.stringify(text)}, but the output was:\n${printed}`);
}
