/**
 * Compiles the WebAssembly kernels of the reader (packages/reader/src/kernels/assembly, in AssemblyScript) into its dist.
 * They have no memory of their own: no data, no heap, no runtime, so that any number of instances share one memory.
 */
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const kernels = ['resize'];
const root = fileURLToPath(new URL('..', import.meta.url));
const source = 'packages/reader/src/kernels/assembly';
const target = 'packages/reader/dist/kernels';

mkdirSync(new URL(`../${target}`, import.meta.url), { recursive: true });

for (const kernel of kernels) {
  const { error, stderr } = await asc.main([
    `${source}/${kernel}.ts`,
    ...['--baseDir', root, '--outFile', `${target}/${kernel}.wasm`],
    ...['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd,threads'],
    // Any shared memory of up to 4 GiB fits this import.
    ...['--importMemory', '--noExportMemory', '--sharedMemory', '--initialMemory', '0', '--maximumMemory', '65536'],
  ]);
  if (error) {
    process.stderr.write(stderr.toString());
    throw new Error(`${source}/${kernel}.ts does not compile.`, { cause: error });
  }
}
