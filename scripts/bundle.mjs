/**
 * Puts the hundreds of modules that tsc made of a package (dist) into a few files (lib), which is what runs: Node takes
 * about a millisecond for each ES module that it loads, in every process and every worker thread. Other packages stay
 * imports, except zod, of which a tenth is used.
 */
import { copyFileSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
/** What is started or imported from outside: `index` by `import`, the others as worker threads and programs. */
const PACKAGES = {
  storage: ['index', 'read-thread', 'visible'],
  format: ['index', 'visible'],
  reader: ['index', 'loader/option-table', 'loader/work/decode-worker', 'bridge/main', 'bridge/bridge'],
  cuda: ['index'],
  writer: [
    'index',
    'option-table',
    'pack/pack-worker',
    'pack/pack-process',
    'samples/python-writer',
    'convert/convert-worker',
    'repair/repair-worker',
    'verify/verify-worker',
  ],
  cli: ['index', 'main'],
};
const INCLUDED = /^zod(\/|$)/;

/** Bundles what is older than what it is made of. vitest calls it before the first test. */
export async function setup() {
  for (const [name, entries] of Object.entries(PACKAGES)) {
    const folder = path.join(root, 'packages', name);
    if (isOld(folder)) await bundle(folder, entries);
  }
}

function isOld(folder) {
  const built = path.join(folder, 'lib/index.js');
  if (!existsSync(built)) return true;
  const made = statSync(built).mtimeMs;
  const inputs = readdirSync(path.join(folder, 'dist'), { recursive: true })
    .filter((file) => /\.(js|wasm)$/.test(file))
    .map((file) => path.join(folder, 'dist', file));
  return [...inputs, fileURLToPath(import.meta.url)].some((file) => statSync(file).mtimeMs >= made);
}

async function bundle(folder, entries) {
  const dist = path.join(folder, 'dist');
  const lib = path.join(folder, 'lib');
  const build = await rolldown({
    // All files lie beside each other, so that a module finds './worker.js' wherever it ends up.
    input: Object.fromEntries(entries.map((entry) => [path.basename(entry), path.join(dist, `${entry}.js`)])),
    platform: 'node',
    checks: { ineffectiveDynamicImport: false },
    external: (id) => /^[^./]/.test(id) && !INCLUDED.test(id),
  });
  rmSync(lib, { recursive: true, force: true });
  const { output } = await build.write({ dir: lib, format: 'esm', chunkFileNames: '[name]-[hash].js' });
  await build.close();
  for (const file of readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.wasm'))) {
    copyFileSync(path.join(dist, file), path.join(lib, path.basename(file)));
  }
  if (output.some(({ moduleIds }) => moduleIds?.some((id) => id.includes('/node_modules/zod/')))) {
    copyFileSync(path.join(folder, 'node_modules/zod/LICENSE'), path.join(lib, 'LICENSE-zod'));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setup();
