import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { runCli } from '#cli/cli';
import { fail } from '#cli/terminal/outcome';
import { withoutProgress } from './cli-process.js';

/** What a command did in this process. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as bytes. */
  readonly bytes: Buffer;
}

/** What Node itself says of files that a command which failed has left to the end of its process. */
const OF_NODE = /^\(node:\d+\) (Warning: Closing file descriptor|\[DEP0137\]|\(Use `node)/;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `shardtool` with these arguments in this process, one after the other, for a quarter of the time of a process of its own.
 * For what commands print and make; what they do with signals, terminals and the environment needs `cli-process.ts`.
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
  // A flag for remote places goes into the environment.
  process.env = { ...before.env };
  process.exitCode = undefined;
  globalThis.console = new Console(streams);
  process.stdout.write = streams.stdout.write.bind(streams.stdout) as typeof process.stdout.write;
  process.stderr.write = streams.stderr.write.bind(streams.stderr) as typeof process.stderr.write;
  try {
    await runCli(args, (error, flags) => fail(error, args, flags));
    // Warnings come a little later.
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

/** Takes everything at once, as `write` does where a pipe is never full. */
function keep(chunks: Buffer[]): Writable {
  return new Writable({
    highWaterMark: Number.MAX_SAFE_INTEGER,
    write(chunk: Buffer, _encoding, done) {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
}
