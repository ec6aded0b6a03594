import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { decompressedByCommand } from './by-command.js';

async function decompressed(codec: 'xz' | 'bz2', pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = [];
  for await (const bytes of decompressedByCommand(codec, pieces, 'a')) found.push(bytes);
  return Buffer.concat(found);
}

async function* piecesOf(...pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

/** Runs `work` while the command `xz` is this shell program. */
async function withXz(program: string, work: () => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'xz-'));
  const { PATH } = process.env;
  writeFileSync(path.join(folder, 'xz'), `#!/bin/sh\n${program}\n`);
  chmodSync(path.join(folder, 'xz'), 0o755);
  process.env.PATH = `${folder}:${PATH}`;
  try {
    await work();
  } finally {
    process.env.PATH = PATH;
    rmSync(folder, { recursive: true });
  }
}

test('an input that a command has read only in part is rejected', async () => {
  await withXz('cat; echo "xz: trailing garbage after EOF ignored" >&2', async () => {
    await expect(decompressed('xz', piecesOf(Buffer.from('abc')))).rejects.toThrow(
      'trailing garbage after EOF ignored',
    );
  });
});

test.skipIf(spawnSync('bzip2', ['--version']).error !== undefined)(
  'bzip2 with bytes after its last stream is rejected, because a damaged stream looks the same',
  async () => {
    const stream = spawnSync('bzip2', ['-c'], { input: 'abc' }).stdout;
    expect(String(await decompressed('bz2', piecesOf(stream, stream)))).toBe('abcabc');
    await expect(decompressed('bz2', piecesOf(stream, Buffer.from('damaged'), stream))).rejects.toThrow(
      'trailing garbage after EOF ignored',
    );
  },
);

test('the error names the signal that ended a command', async () => {
  await withXz('echo ab; kill -9 $$', async () => {
    await expect(decompressed('xz', piecesOf(Buffer.from('abc')))).rejects.toThrow('xz ended with SIGKILL');
  });
});

test('an error of the input takes precedence over an error of the command', async () => {
  async function* broken() {
    yield Buffer.from('abc');
    throw new Error('the disk is broken');
  }
  await withXz('cat; exit 1', async () => {
    await expect(decompressed('xz', broken())).rejects.toThrow('the disk is broken');
  });
});

test('after an early stop the input is closed', async () => {
  let isOpen = true;
  async function* endless() {
    try {
      for (;;) {
        await setImmediate();
        yield Buffer.alloc(1 << 20);
      }
    } finally {
      isOpen = false;
    }
  }
  await withXz('exec cat', async () => {
    for await (const bytes of decompressedByCommand('xz', endless(), 'a')) if (bytes.length > 0) break;
    expect(isOpen).toBe(false);
  });
});
