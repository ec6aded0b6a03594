/**
 * Raises the version of all packages, including Python's, as the files in .changeset require, and moves their text to
 * CHANGELOG.md.
 *
 *   npm run changeset            asks what changed, and writes a file into .changeset
 *   npm run release:version
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url));
const tool = fileURLToPath(new URL('../../node_modules/@changesets/cli/bin.js', import.meta.url));
execFileSync(process.execPath, [tool, 'version'], { cwd: root, stdio: 'inherit' });

const folders = readdirSync(path.join(root, 'packages')).map((name) => path.join(root, 'packages', name));
const { version } = JSON.parse(readFileSync(path.join(root, 'packages/cli/package.json'), 'utf8'));
const written = path.join(root, 'packages/cli/CHANGELOG.md');
const log = path.join(root, 'CHANGELOG.md');
const before = readFileSync(log, 'utf8');
if (existsSync(written) && !before.includes(`\n## ${version}\n`)) {
  const [, section = ''] = readFileSync(written, 'utf8').split(/^(?=## )/m);
  // Removes lines about our own packages, which have one version, and headings that are then empty.
  const own = section
    .replace(/^\s*- (?:Updated dependencies.*|@?shardtool[/\w]*@[\d.]+)\n?/gm, '')
    .replace(/^### .*\s+(?=^### |(?![\s\S]))/gm, '')
    .trim();
  const [head, ...sections] = before.split(/^(?=## )/m);
  writeFileSync(log, [head, `${own}\n\n`, ...sections].join(''));
}
for (const folder of folders) rmSync(path.join(folder, 'CHANGELOG.md'), { force: true });

const python = path.join(root, 'python/pyproject.toml');
writeFileSync(python, readFileSync(python, 'utf8').replace(/^version = ".*"$/m, `version = "${version}"`));
console.log(`All packages have version ${version} now: run "npm run setup", check CHANGELOG.md, and commit.`);
