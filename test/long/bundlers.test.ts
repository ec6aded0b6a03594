import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { emptyFolder } from '../datasets.js';

const root = path.resolve(import.meta.dirname, '../..');
const PACKAGES = ['base', 'storage', 'format', 'reader', 'cuda', 'writer', 'cli'];
/** The versions that docs/bundlers.md names. */
const TOOLS = {
  bundlers: ['esbuild@0.28.2', 'vite@8.3.8', 'webpack@5.113.0', 'webpack-cli@7'],
  next: ['next@16.4.6', 'react@19', 'react-dom@19'],
  runtimes: ['@oven/bun-linux-x64@1.4.5', '@deno/linux-x64-glibc@2.9.6', '@yarnpkg/cli-dist@4'],
} as const;
const MINUTES = 60_000;

/** Packs, loads and verifies, each with two worker threads. */
const PROGRAM = `
import { openDataset, pack, verify } from 'shardtool';

const [source, output] = process.argv.slice(2);
const { samples } = await pack(source, output, { workers: 2, maxShardSamples: 20, overwrite: true });
const dataset = await openDataset(output);
let rows = 0;
for await (const batch of dataset.loader({ batchSize: 16, transform: 'train224', workers: 2 })) rows += batch.size;
await dataset.close();
const { faults } = await verify(output, { check: 'decode', workers: 2 });
console.log(JSON.stringify({ samples, rows, faults }));
`;
const RESULT = '{"samples":60,"rows":60,"faults":0}\n';

const base = mkdtempSync(path.join(os.tmpdir(), 'shardtool-bundlers-'));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const tarballs = process.env.SHARDTOOL_TARBALLS ?? path.join(base, 'tarballs');
const page = readFileSync(path.join(root, 'docs/bundlers.md'), 'utf8');

interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly all: string;
}

function start(cwd: string, command: string, ...args: string[]): Ran {
  const env = { ...process.env, NODE_OPTIONS: '', NEXT_TELEMETRY_DISABLED: '1', YARN_IGNORE_PATH: '1' };
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return { status, stdout, all: `${command} ${args.join(' ')}\n${stdout}${stderr}` };
}

function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, all } = start(cwd, command, ...args);
  expect(status, all).toBe(0);
  return stdout;
}

function project(name: string, ...packages: string[]): string {
  const folder = path.join(base, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
  writeFileSync(path.join(folder, 'app.js'), PROGRAM);
  run(folder, 'npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages);
  return folder;
}

/** Writes the file that the page shows below a heading, whose first line is its name. */
function fileOfPage(heading: string, folder: string): string {
  const part = page.split('\n## ').find((one) => one.startsWith(`${heading}\n`))!;
  const [, name, text] = /```js\n\/\/ (\S+)\n([\s\S]*?)```/.exec(part)!;
  writeFileSync(path.join(folder, name!), text!);
  return name!;
}

const photos = path.join(root, 'examples/photos');
const tarballFiles = () => readdirSync(tarballs).map((file) => path.join(tarballs, file));
let app = '';
let tools = '';

beforeAll(() => {
  if (process.env.SHARDTOOL_TARBALLS === undefined) {
    mkdirSync(tarballs);
    const folders = PACKAGES.map((name) => path.join(root, 'packages', name));
    run(root, 'npm', 'pack', ...folders, '--silent', '--ignore-scripts', '--pack-destination', tarballs);
  }
  app = project('app', ...tarballFiles(), ...TOOLS.bundlers);
  tools = project('tools', ...TOOLS.runtimes);
}, 10 * MINUTES);

test.each([
  ['esbuild', 'dist/app.mjs', (file: string) => ['node', file]],
  ['Vite', 'dist/app.js', () => ['npx', 'vite', 'build']],
  ['webpack', 'dist/app.mjs', () => ['npx', 'webpack']],
])(
  'a program that %s bundles as documented works as before',
  (heading, bundle, commandOf) => {
    rmSync(path.join(app, 'dist'), { recursive: true, force: true });
    const [command, ...args] = commandOf(fileOfPage(heading, app));
    run(app, command!, ...args);
    expect(run(app, process.execPath, bundle, photos, emptyFolder())).toBe(RESULT);
  },
  5 * MINUTES,
);

test(
  'a program that bundles shardtool itself gets an error that says what to do',
  () => {
    const script =
      "await (await import('esbuild')).build({ entryPoints: ['app.js'], outfile: 'inside/app.mjs', bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' })";
    run(app, process.execPath, '--input-type=module', '-e', script);
    const { status, all } = start(app, process.execPath, 'inside/app.mjs', photos, emptyFolder());
    expect(status, all).not.toBe(0);
    expect(all).toContain('keep "shardtool" out of the bundle (docs/bundlers.md)');
  },
  5 * MINUTES,
);

test(
  'a route of Next.js loads with worker threads',
  async () => {
    const shards = path.join(base, 'shards');
    run(app, process.execPath, 'app.js', photos, shards);
    const next = project('next', ...tarballFiles(), ...TOOLS.next);
    fileOfPage('Next.js', next);
    mkdirSync(path.join(next, 'app/count'), { recursive: true });
    writeFileSync(
      path.join(next, 'app/layout.js'),
      'export default ({ children }) => <html><body>{children}</body></html>;',
    );
    writeFileSync(
      path.join(next, 'app/count/route.js'),
      `import { openDataset } from 'shardtool';
export const dynamic = 'force-static';
export async function GET() {
  const dataset = await openDataset(${JSON.stringify(shards)});
  let rows = 0;
  for await (const batch of dataset.loader({ batchSize: 16, transform: 'train224', workers: 2 })) rows += batch.size;
  await dataset.close();
  return Response.json({ rows });
}`,
    );
    // A static route is computed by the build, in the server's own runtime.
    run(next, 'npx', 'next', 'build');
    expect(readFileSync(path.join(next, '.next/server/app/count.body'), 'utf8')).toBe('{"rows":60}');
  },
  10 * MINUTES,
);

test(
  'Bun and Deno run the program, and Bun bundles it, but not into an executable',
  () => {
    const bun = path.join(tools, 'node_modules/@oven/bun-linux-x64/bin/bun');
    const deno = path.join(tools, 'node_modules/@deno/linux-x64-glibc/deno');
    expect(run(app, bun, 'app.js', photos, emptyFolder())).toBe(RESULT);
    run(app, bun, 'build', '--target', 'node', '--packages', 'external', 'app.js', '--outdir', 'bun');
    expect(run(app, process.execPath, 'bun/app.js', photos, emptyFolder())).toBe(RESULT);
    run(app, bun, 'build', '--compile', '--external', 'shardtool', 'app.js', '--outfile', 'bun/app');
    expect(start(app, path.join(app, 'bun/app'), photos, emptyFolder()).status).not.toBe(0);
    expect(run(app, deno, 'run', '-A', '--node-modules-dir=manual', 'app.js', photos, emptyFolder())).toBe(RESULT);
  },
  5 * MINUTES,
);

test(
  "Yarn Plug'n'Play runs the program",
  () => {
    const folder = path.join(base, 'pnp');
    mkdirSync(folder);
    const places = Object.fromEntries(
      PACKAGES.map((name) => {
        const stem = name === 'cli' ? 'shardtool' : `shardtool-${name}`;
        const file = readdirSync(tarballs).find((one) => one.replace(/-\d.*$/, '') === stem)!;
        return [name === 'cli' ? 'shardtool' : `@shardtool/${name}`, `file:${path.join(tarballs, file)}`];
      }),
    );
    const manifest = { name: 'pnp', private: true, type: 'module', resolutions: places };
    const dependencies = { shardtool: places.shardtool };
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies }));
    const settings = ['nodeLinker: pnp', 'enableScripts: false', 'enableTelemetry: false', 'enableGlobalCache: false'];
    // Yarn does not read Node's variable.
    const certificates = process.env.NODE_EXTRA_CA_CERTS;
    if (certificates !== undefined) settings.push(`httpsCaFilePath: ${certificates}`);
    writeFileSync(path.join(folder, '.yarnrc.yml'), `${settings.join('\n')}\n`);
    writeFileSync(path.join(folder, 'yarn.lock'), '');
    writeFileSync(path.join(folder, 'app.js'), PROGRAM);
    const yarn = path.join(tools, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js');
    run(folder, process.execPath, yarn, 'install');
    expect(run(folder, process.execPath, yarn, 'node', 'app.js', photos, emptyFolder())).toBe(RESULT);
  },
  5 * MINUTES,
);
