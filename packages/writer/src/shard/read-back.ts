import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { crc32, crc32Hex, WriteCheckError } from '@shardtool/base';
import type { OutputLayout } from '@shardtool/format';
import { checkShard } from '../check/check-shard.js';

/** Small enough for the processor's cache, since it is checksummed right after it is read. */
const PIECE_BYTES = 256 << 10;

/** A shard that was just written, with its index. */
export interface WrittenShard {
  /** Name in messages. */
  readonly name: string;
  /** Path until it gets its final name. */
  readonly path: string;
  readonly indexPath: string;
  readonly layout: Pick<OutputLayout, 'name'>;
  /** The file descriptor of its writer. */
  readonly fd: number;
  /** Its size, and its crc32 computed from the crc32 of the original payloads. */
  readonly bytes: number;
  readonly crc32: number;
}

/**
 * Reads a shard that was just written, mostly from the page cache, and compares its size and crc32 with the expected
 * ones. It opens the path, since that file becomes part of the dataset, and checks that it is the file that the writer
 * has open. Throws {@link WriteCheckError}, which names a sample if the index shows that it is wrong.
 */
export async function readBack(shard: WrittenShard): Promise<void> {
  const fd = openSync(shard.path, 'r');
  try {
    if (!isSameFile(fd, shard.fd)) throw changed(shard, 'another file has replaced it');
    const found = sumUp(fd);
    if (found.bytes === shard.bytes && found.crc32 === shard.crc32) return;
    const { name, path, indexPath, layout } = shard;
    // An MDS shard cannot be opened by this path, because its name decides whether it is compressed.
    const { faults } = await checkShard(
      { name, path, indexPath, cropsPath: null, format: layout.name, record: null },
      null,
    );
    const whole = `it has ${found.bytes} bytes with the crc32 ${crc32Hex(found.crc32)} instead of ${shard.bytes} with ${crc32Hex(shard.crc32)}`;
    const fault = faults.find(({ key }) => key !== undefined);
    throw changed(shard, fault === undefined ? whole : `${whole}; in sample "${fault.key}", ${fault.reason}`);
  } finally {
    closeSync(fd);
  }
}

function isSameFile(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one, { bigint: true }), fstatSync(other, { bigint: true })];
  return a.ino === b.ino && a.dev === b.dev;
}

function sumUp(fd: number): { readonly bytes: number; readonly crc32: number } {
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  let sum = 0;
  for (let at = 0; ; ) {
    const bytes = readSync(fd, piece, 0, piece.length, at);
    if (bytes === 0) return { bytes: at, crc32: sum };
    sum = crc32(piece.subarray(0, bytes), sum);
    at += bytes;
  }
}

function changed({ name, path }: WrittenShard, what: string): WriteCheckError {
  const message = `${name} differs from what was read: ${what}. Check that no other process writes to ${path}, then pack again. If this happens again, check the memory and the disk of this machine.`;
  return new WriteCheckError({ shard: name, path }, message);
}
