import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, inject, test } from 'vitest';
import { emptyFolder } from './datasets.js';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Each package after its dependencies. */
const packages = ['base', 'storage', 'format', 'reader', 'cuda', 'writer', 'cli'];
/** .ci/run creates them once, for the wheel as well. */
const tarballs = process.env.SHARDTOOL_TARBALLS ?? emptyFolder();
/** An empty folder outside the repository, into which the tarballs are installed. */
const project = path.join(emptyFolder(), 'project');

/** Variables that npm and vitest set for their programs. Those that locate certificates and registries must be kept. */
const OF_THIS_RUN =
  /^(npm_(package|lifecycle|command|execpath|node_execpath|config_local_prefix)|NODE_(OPTIONS|PATH|ENV)$|INIT_CWD|VITEST)/;

declare module 'vitest' {
  interface ProvidedContext {
    /** NODE_EXTRA_CA_CERTS of the environment. */
    certificates: string;
  }
}

function run(command: string, args: readonly string[], cwd = project): string {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THIS_RUN.test(name)));
  if (inject('certificates') !== '') env.NODE_EXTRA_CA_CERTS = inject('certificates');
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', env, timeout: 240_000 });
  if (error !== undefined) throw error;
  expect(status, `${command} ${args.join(' ')}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

/** The files of each tarball. */
const contents = new Map<string, string[]>();

beforeAll(() => {
  const folders = packages.map((name) => path.join(root, 'packages', name));
  if (readdirSync(tarballs).length === 0) {
    run('npm', ['pack', ...folders, '--silent', '--ignore-scripts', '--pack-destination', tarballs], root);
  }
  for (const name of packages) {
    const stem = name === 'cli' ? 'shardtool' : `shardtool-${name}`;
    const tarball = readdirSync(tarballs).find((file) => file.replace(/-\d.*$/, '') === stem)!;
    const files = run('tar', ['tzf', path.join(tarballs, tarball)], root)
      .trim()
      .split('\n');
    contents.set(
      name,
      files.map((file) => file.replace(/^package\//, '')),
    );
  }
  mkdirSync(project);
  writeFileSync(path.join(project, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n');
  const files = readdirSync(tarballs).map((file) => path.join(tarballs, file));
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...files]);
}, 300_000);

test('a tarball contains the code, its types, its licence and a README, and no tests, sources or source maps', () => {
  for (const [name, files] of contents) {
    expect(files, name).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'package.json', 'lib/index.js', 'lib/types/index.d.ts']),
    );
    const others = files.filter(
      (file) =>
        !/^(LICENSE|README\.md|package\.json|lib\/([\w-]+\.(c?js|wasm)|THIRD-PARTY\.txt|third-party\.json|turbojpeg\/.+|page\/\w+\.(html|js|css|svg)|web\/[\w-]+\.js|types\/.*(?<!\.test)\.d\.ts))$/.test(
          file,
        ),
    );
    expect(others, name).toEqual([]);
  }
  expect(contents.get('reader')).toContain('lib/resize.wasm');
  expect(contents.get('cli')).toEqual(
    expect.arrayContaining(
      ['index.html', 'static.html', 'app.js', 'style.css', 'icon.svg'].map((file) => `lib/page/${file}`),
    ),
  );
});

/** Number of packages of an installation, including these, and bytes of their files: on Linux with glibc. */
const MOST_PACKAGES = 18;
const MOST_BYTES = 54e6;

test('an installation is small, and no package of it runs a script', () => {
  const modules = path.join(project, 'node_modules');
  const lock = JSON.parse(readFileSync(path.join(modules, '.package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>;
  };
  const scripts = Object.entries(lock.packages).filter(([, { hasInstallScript }]) => hasInstallScript);
  expect(scripts.map(([name]) => name)).toEqual([]);
  expect(Object.keys(lock.packages).length).toBeLessThanOrEqual(MOST_PACKAGES);
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' }).map((file) => path.join(modules, file));
  const bytes = files
    .map((file) => statSync(file))
    .reduce((sum, { size, mode }) => sum + (mode & 0o100000 ? size : 0), 0);
  expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
});

test('a package lists its bundled third-party packages, with their licences', () => {
  for (const name of packages.filter((name) => !['base', 'cuda'].includes(name))) {
    const lib = path.join(root, 'packages', name, 'lib');
    const parts = JSON.parse(readFileSync(path.join(lib, 'third-party.json'), 'utf8')) as { name: string }[];
    const text = readFileSync(path.join(lib, 'THIRD-PARTY.txt'), 'utf8');
    expect(parts.length).toBeGreaterThan(0);
    if (name === 'cli') expect(parts.map((part) => part.name)).toEqual(expect.arrayContaining(['preact', 'yargs']));
    for (const part of parts) expect(text).toContain(`- ${part.name} `);
    expect(contents.get(name)).toEqual(expect.arrayContaining(['lib/THIRD-PARTY.txt', 'lib/third-party.json']));
  }
});

test('npx shardtool packs, lists, verifies and measures from the installed tarballs', () => {
  const photos = path.join(root, 'examples/photos');
  expect(run('npx', ['--no-install', 'shardtool', '--help'])).toContain('Usage: shardtool <command> [options]');
  expect(run('npx', ['--no-install', 'shardtool', 'pack', photos, 'shards', '--max-shard-samples', '20'])).toContain(
    'Packed 60 files',
  );
  // The program that npx starts.
  const program = path.join(project, 'node_modules/.bin/shardtool');
  expect(run(program, ['ls', 'shards'])).toContain('3 tar shards, 60 samples');
  expect(run(program, ['verify', 'shards', '--check', 'decode'])).toContain('OK, all checksums match');
  const bench = JSON.parse(run(program, ['bench', 'shards', '--batch-size', '16', '--json']));
  expect(bench).toMatchObject({ images: 60, batches: 4 });
});

test('a program that imports from shardtool runs, and compiles with the strictest settings', () => {
  const program = `
import { type Batch, type Dataset, type DeviceLoader, type Fault, NoCudaError, type PixelValues } from 'shardtool';
import { openDataset, pack, ShardtoolError, verify } from 'shardtool';

const [source, output] = process.argv.slice(2) as [string, string];
const report = await pack(source, output, { maxShardSamples: 20, seed: 1 });
const shards: number = report.shards;
const dataset: Dataset = await openDataset(output);
const sample = await dataset.get('cat/cat_001');
const bytes: Uint8Array = sample.fields['jpg']!;
let rows = 0;
for await (const batch of dataset.loader({ batchSize: 32, transform: 'eval224', fields: [] })) {
  const typed: Batch = batch;
  const images: PixelValues | null = typed.images;
  const pixels: Uint8Array = batch.images;
  rows += 0 * pixels.length;
  rows += images!.length / (224 * 224 * 3);
}
const faults: Fault[] = [];
await verify(output, { onFault: (fault) => faults.push(fault) });
const error: string = await openDataset('nowhere').then(
  () => 'none',
  (reason: unknown) => (reason instanceof ShardtoolError ? reason.name : 'another'),
);
process.env['SHARDTOOL_CUDA_DRIVER'] = 'nowhere';
const gpu: DeviceLoader = dataset.loader({ transform: 'eval224', device: { name: 'cuda:0', dtype: 'float16' } });
let noDriver = '';
try {
  for await (const { devicePointer } of gpu) noDriver = String(devicePointer);
} catch (reason) {
  noDriver = reason instanceof NoCudaError ? reason.name : String(reason);
}
await dataset.close();
console.log(JSON.stringify([shards, bytes.length, rows, faults.length, error, noDriver]));
`;
  writeFileSync(path.join(project, 'program.ts'), program);
  const types = path.join(root, 'node_modules/@types');
  const strictest = [
    '--strict',
    '--skipLibCheck',
    'false',
    '--noUncheckedIndexedAccess',
    '--exactOptionalPropertyTypes',
  ];
  const modules = ['--module', 'nodenext', '--target', 'es2023', '--typeRoots', types, '--types', 'node'];
  run(process.execPath, [
    path.join(root, 'node_modules/typescript/bin/tsc'),
    ...strictest,
    ...modules,
    '--singleThreaded',
    'program.ts',
  ]);
  const printed = run(process.execPath, ['program.js', path.join(root, 'examples/photos'), 'imported']);
  expect(JSON.parse(printed)).toEqual([3, 75382, 60, 0, 'FileNotFoundError', 'NoCudaError']);
});
