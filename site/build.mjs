/**
 * Builds the site from the pages of the repository: README.md, docs, the TypeScript API from the declarations that `npm run build`
 * made, and the Python API from its docstrings.
 *
 *   npm run docs                       into site/built
 *   npm run docs -- --base /shardtool/ for a location below the root of its host
 *   npm run docs -- --versions         into site/built/VERSION, next to the versions that are already in site/built
 *   npm run docs -- --serve            and serves it on this machine
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { serve, base, versions } = parseArgs({
  options: {
    serve: { type: 'boolean', default: false },
    base: { type: 'string', default: '/' },
    versions: { type: 'boolean', default: false },
  },
}).values;
const site = fileURLToPath(new URL('.', import.meta.url));
const root = path.join(site, '..');
const python = process.env.SHARDTOOL_PYTHON ?? 'python3';
const { version } = JSON.parse(readFileSync(path.join(root, 'packages/cli/package.json'), 'utf8'));
const env = {
  ...process.env,
  SITE_BASE: versions ? `${base}${version}/` : base,
  SITE_OUTPUT: versions ? `built/${version}` : 'built',
  SITE_VERSIONS: versions ? '1' : '',
};
const run = (program, ...args) => execFileSync(program, args, { cwd: site, env, stdio: 'inherit' });
const runPackage = (file, ...args) => run(process.execPath, path.join('node_modules', file), ...args);

run('npx', '--yes', 'pnpm@12.21.0', 'install', '--frozen-lockfile', '--reporter=silent');
const { layOut } = await import('./pages.mjs');
const { writeVersions } = await import('./versions.mjs');
layOut(root, path.join(site, '.pages'));
const api = execFileSync(python, ['python_api.py', path.join(root, 'python/src/shardtool')], { cwd: site });
writeFileSync(path.join(site, '.pages/api-python.md'), api);
runPackage('typedoc/bin/typedoc');
runPackage('vitepress/bin/vitepress.js', 'build', '.');
if (versions) writeVersions(path.join(site, 'built'));
if (serve) runPackage('vitepress/bin/vitepress.js', 'preview', '.');
