import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { UnsupportedShardError } from '@shardtool/base';

/** Commands that decompress standard input to standard output, by codec, with the Debian package that has them. */
const COMMANDS = {
  xz: { command: 'xz', from: 'xz-utils' },
  bz2: { command: 'bzip2', from: 'bzip2' },
} as const;

/** Number of characters of the command's standard error that are kept. */
const MOST_MESSAGE = 400;

/**
 * Decompresses `pieces` with the command `xz` or `bzip2` of this machine, piece by piece. Throws
 * {@link UnsupportedShardError} if it is not installed, and Error with the command's message if the input is damaged or
 * truncated. `name` is the name of the input, for messages.
 */
export async function* decompressedByCommand(
  codec: keyof typeof COMMANDS,
  pieces: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array> {
  const { command, from } = COMMANDS[codec];
  const child = spawn(command, ['-d', '-c'], { stdio: ['pipe', 'pipe', 'pipe'] });
  let message = '';
  child.stderr.on('data', (text: Buffer) => {
    message = `${message}${text}`.slice(0, MOST_MESSAGE);
  });
  const ended = new Promise<number | NodeJS.Signals | NodeJS.ErrnoException>((resolve) => {
    child.once('error', resolve);
    child.once('close', (status, signal) => resolve(status ?? signal!));
  });
  // A command that fails closes its input; its exit status and message have the reason. An error of `pieces` has priority.
  const fed = feed(child.stdin, pieces);
  // It is awaited below.
  fed.catch(() => undefined);
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    await fed;
    const status = await ended;
    // If the rest of the input is not another stream, bzip2 ignores it and only warns.
    if (status === 0 && !message.includes('trailing garbage')) return;
    if (typeof status !== 'object') throw new Error(firstLine(message) ?? `${command} ended with ${status}`);
    if (status.code !== 'ENOENT') throw status;
    const remedy = `install it (Debian: apt install ${from}), or decompress the file on another machine`;
    throw new UnsupportedShardError(
      { shard: name },
      `${name}: it is compressed with ${codec}, and the command ${command}, which decompresses it, is not installed: ${remedy}.`,
    );
  } finally {
    // If the caller stops early, the command is still running. The caller then closes what `pieces` reads.
    child.stdin.destroy();
    child.kill();
    await fed.catch(() => undefined);
  }
}

/** Writes `pieces` until the command closes its input. Rejects with their error. */
async function feed(input: Writable, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  input.on('error', () => undefined);
  try {
    for await (const piece of pieces) {
      const error = await new Promise((resolve) => input.write(piece, resolve));
      if (error) return;
    }
  } finally {
    input.end();
  }
}

/** The first line of a message has the reason. Further lines contain advice. */
function firstLine(message: string): string | undefined {
  return message.match(/\S.*/)?.[0].replace(/[;.]?\s*$/, '');
}
