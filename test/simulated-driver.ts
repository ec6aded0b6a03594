import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { emptyFolder } from './datasets.js';

/** Controls and checks a simulated driver: simulated-driver/driver.c. */
export interface SimulatedDriver {
  reset(memoryBytes?: number, devices?: number): void;
  /** Makes a call fail, after `after` others of its name. `*`: any call, and the context is lost. */
  fail(call: string, after: number, code: number): void;
  /** The faults of the calls so far; empty if there were none. */
  failure(): string;
  /** Work of a consumer on device memory; the result is not 0 if the memory is not ready for it. */
  use(address: bigint, bytes: number, stream: bigint, writes: boolean): number;
  /** The calls since the last time, such as `cuEventRecord stream 1 event 0`. */
  calls(): string[];
  /** Number of objects that were created and not released. */
  living(): number;
}

/**
 * Compiles the simulated driver, and makes @shardtool/cuda use it. If there is no C compiler, prints that and returns
 * null, or throws if `SHARDTOOL_REQUIRE_CC` is set.
 */
export function simulatedDriver(): SimulatedDriver | null {
  const compiler = process.env.CC ?? 'cc';
  if (spawnSync(compiler, ['--version']).status !== 0) {
    const lack = `The C compiler ${compiler} is not here`;
    if (process.env.SHARDTOOL_REQUIRE_CC) throw new Error(`${lack}, and SHARDTOOL_REQUIRE_CC is set`);
    console.log(`${lack}: the tests that need the simulated driver are skipped`);
    return null;
  }
  const library = path.join(emptyFolder(), 'simulated-driver.so');
  const source = path.join(import.meta.dirname, 'simulated-driver', 'driver.c');
  // Without contraction a product and a sum are rounded separately, as in the kernel.
  const flags = ['-O2', '-Wall', '-Wextra', '-Werror', '-ffp-contract=off', '-shared', '-fPIC', '-o', library, source];
  const { status, stderr } = spawnSync(compiler, flags, { encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) throw new Error(`${compiler} ended with ${status}: ${stderr}`);
  process.env.SHARDTOOL_CUDA_DRIVER = library;
  return bind(library);
}

/** The functions of koffi that are used here. Only the packages depend on koffi. */
interface Koffi {
  load(file: string): { func<Call>(name: string, result: string, parameters: readonly string[]): Call };
}

function bind(file: string): SimulatedDriver {
  const require = createRequire(new URL('../packages/cuda/package.json', import.meta.url));
  const library = (require('koffi') as Koffi).load(file);
  const reset = library.func<(memoryBytes: number, devices: number) => void>('sim_reset', 'void', ['double', 'int']);
  const use = library.func<(address: bigint, bytes: number, stream: bigint, writes: number) => number>(
    'sim_use',
    'int',
    ['uint64_t', 'double', 'uint64_t', 'int'],
  );
  const calls = library.func<() => string>('sim_calls', 'const char*', []);
  return {
    reset: (memoryBytes = 2 ** 30, devices = 1) => reset(memoryBytes, devices),
    fail: library.func('sim_fail', 'void', ['const char*', 'int', 'int']),
    failure: library.func('sim_failure', 'const char*', []),
    use: (address, bytes, stream, writes) => use(address, bytes, stream, Number(writes)),
    calls: () => calls().trim().split('\n'),
    living: library.func('sim_living', 'int', []),
  };
}
