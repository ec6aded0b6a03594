import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { runCli } from '#cli/cli';
import { fail } from '#cli/terminal/outcome';
import { withoutProgress } from './cli-process.js';

/** The result of a command that ran in this process. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as bytes. */
  readonly bytes: Buffer;
}

/** Warnings of Node about open files that a failed command leaves to the end of its process. */
const OF_NODE = /^\(node:\d+\) (Warning: Closing file descriptor|\[DEP0137\]|\(Use `node)/;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `shardtool` with these arguments in this process, one call after the other, in a quarter of the time of a separate process.
 * For tests of output and files; tests of signals, terminals and the environment need `cli-process.ts`.
 */
export function shardtool(...args: string[]): Promise<Outcome> {
  const next = last.then(() => run(args));
  last = next.catch(() => undefined);
  return next;
}

async function run(args: readonly string[]): Promise<Outcome> {
  const [stdout, stderr]: Buffer[][] = [[], []];
  const before = { console: globalThis.console, env: process.env, exitCode: process.exitCode };
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write };
  const streams = { stdout: keep(stdout!), stderr: keep(stderr!) };
  // A flag for remote storage is set in the environment.
  process.env = { ...before.env };
  process.exitCode = undefined;
  globalThis.console = new Console(streams);
  process.stdout.write = streams.stdout.write.bind(streams.stdout) as typeof process.stdout.write;
  process.stderr.write = streams.stderr.write.bind(streams.stderr) as typeof process.stderr.write;
  try {
    await runCli(args, (error, flags) => fail(error, args, flags));
    // Warnings are emitted a little later.
    await setImmediate();
    const bytes = Buffer.concat(stdout!);
    const code = Number(process.exitCode ?? 0);
    const said = stderr!.map(String).filter((text) => !OF_NODE.test(text));
    return { code, bytes, stdout: bytes.toString(), stderr: withoutProgress(said.join('')) };
  } finally {
    process.stdout.write = writes.stdout;
    process.stderr.write = writes.stderr;
    globalThis.console = before.console;
    process.exitCode = before.exitCode;
    process.env = before.env;
  }
}

/** Accepts everything at once, like `write` to a pipe that is never full. */
function keep(chunks: Buffer[]): Writable {
  return new Writable({
    highWaterMark: Number.MAX_SAFE_INTEGER,
    write(chunk: Buffer, _encoding, done) {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
}
