/**
 * Compiles the WebAssembly kernels of the reader (packages/reader/src/kernels/assembly, in AssemblyScript) into its dist.
 * Kernels have no data, no heap and no runtime, so any number of instances can share one memory.
 */
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

/** The entry file of each kernel, below `source`. */
const kernels = {
  resize: 'resize/kernel.ts',
  'exact-resize': 'exact-resize/kernel.ts',
  'wide-resize': 'wide-resize/kernel.ts',
  effects: 'effects/kernel.ts',
  measure: 'measure.ts',
  'crop-index': 'crop-index/kernel.ts',
};
const root = fileURLToPath(new URL('..', import.meta.url));
const source = 'packages/reader/src/kernels/assembly';
const target = 'packages/reader/dist/kernels';

mkdirSync(root + target, { recursive: true });
for (const [kernel, entry] of Object.entries(kernels)) if (isOld(kernel)) await compile(kernel, entry);

/** Compiling takes seconds, so a kernel that is newer than all of its sources is kept. */
function isOld(kernel) {
  const output = `${root}${target}/${kernel}.wasm`;
  const inputs = readdirSync(root + source, { recursive: true }).map((file) => `${root}${source}/${file}`);
  const changedMs = Math.max(...[...inputs, fileURLToPath(import.meta.url)].map((file) => statSync(file).mtimeMs));
  return !existsSync(output) || statSync(output).mtimeMs <= changedMs;
}

async function compile(kernel, entry) {
  const { error, stderr } = await asc.main([
    `${source}/${entry}`,
    ...['--baseDir', root, '--outFile', `${target}/${kernel}.wasm`],
    ...['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd,threads'],
    // Any shared memory of up to 4 GiB fits this import.
    ...['--importMemory', '--noExportMemory', '--sharedMemory', '--initialMemory', '0', '--maximumMemory', '65536'],
  ]);
  if (error) {
    process.stderr.write(stderr.toString());
    throw new Error(`${source}/${entry} does not compile.`, { cause: error });
  }
}
