import type { Worker } from 'node:worker_threads';

/**
 * Workers have so long to end by themselves. To terminate one while koffi binds functions aborts the whole process
 * (N-API cannot throw any more), so it is the last resort, and only for a worker that has started.
 */
const PATIENCE_MS = 5000;

/**
 * `node --input-type=module -e ...` is about the script of the main thread, and a worker that inherits it does not start.
 * All other flags are inherited: to name V8's (`--max-old-space-size`) here would be an error.
 */
const FLAGS = process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {};

/**
 * Options of a worker whose JavaScript heap keeps at most `youngMb` MiB of young objects. Where nothing outlives a sample
 * collecting them costs next to nothing at any size; by default they would grow to 48 MiB in every worker.
 */
export function workerOptions(youngMb: number) {
  return { resourceLimits: { maxYoungGenerationSizeMb: youngMb }, ...FLAGS };
}

/** Waits for workers that were asked to end (`exits` resolve when they have), and ends those that have not in time. */
export async function awaitExits(workers: readonly Worker[], exits: readonly Promise<unknown>[]): Promise<void> {
  const patience = setTimeout(() => {
    for (const worker of workers) void worker.terminate();
  }, PATIENCE_MS);
  for (const worker of workers) worker.ref();
  await Promise.all(exits);
  clearTimeout(patience);
}
