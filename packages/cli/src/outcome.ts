import { OptionError, ShardtoolError } from '@shardtool/format';

/** The command line itself is not right: exit code 2. */
export class UsageError extends Error {}

/** The work was done and found a fault, which is already printed: exit code 1. */
export function foundFault(): void {
  process.exitCode = 1;
}

/** Prints one sentence (with the stack if `verbose`) and sets the exit code: 2 for usage, 1 for everything else. */
export function fail(error: unknown, verbose: boolean): void {
  const isUsage = error instanceof UsageError || error instanceof OptionError;
  const known = isUsage || error instanceof ShardtoolError;
  const text = error instanceof Error ? error.message : String(error);
  // An error that nobody foresaw is shown whole: its stack is what a report needs.
  console.error(verbose || !known ? error : `shardtool: ${text}`);
  process.exitCode = isUsage ? 2 : 1;
}

/** `shardtool ls | head`: the reader has seen enough, which is no fault. */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

/** Writes to standard output and waits where the pipe is full, so that a long listing takes no memory. */
export function write(text: string | Uint8Array): Promise<void> | void {
  if (process.stdout.write(text)) return;
  return new Promise((resolve) => process.stdout.once('drain', resolve));
}
