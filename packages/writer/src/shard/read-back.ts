import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { crc32, crc32Hex, WriteCheckError } from '@shardtool/base';
import type { OutputLayout } from '@shardtool/format';
import { checkShard } from '../check/check-shard.js';

/** Short enough to stay in the processor's cache: it is summed up right after it is read. */
const PIECE_BYTES = 256 << 10;

/** A shard that was just written, with its index. */
export interface WrittenShard {
  /** What messages call it. */
  readonly name: string;
  /** Where it is until it gets its name. */
  readonly path: string;
  readonly indexPath: string;
  readonly layout: Pick<OutputLayout, 'name'>;
  /** The file that its writer has open. */
  readonly fd: number;
  /** Its size, and its crc32 as it follows from the crc32 that each payload had where it came from. */
  readonly bytes: number;
  readonly crc32: number;
}

/**
 * Reads a shard that was just written, mostly from the page cache, and compares it with the size and crc32 that it should
 * have. It is opened by its path, since that is what becomes part of the dataset, and has to be the file that the
 * writer has open. Throws {@link WriteCheckError}, which names a sample if the index shows one that is wrong.
 */
export async function readBack(shard: WrittenShard): Promise<void> {
  const fd = openSync(shard.path, 'r');
  try {
    if (!isSameFile(fd, shard.fd)) throw changed(shard, 'another file has taken its place');
    const found = sumUp(fd);
    if (found.bytes === shard.bytes && found.crc32 === shard.crc32) return;
    const { name, path, indexPath, layout } = shard;
    // An MDS shard is not opened by this path: its name decides whether it is compressed.
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
  const message = `${name} was not written as it was read: ${what}. Check that nothing else writes to ${path}, then pack again; if this happens again, check the memory and the disk of this machine.`;
  return new WriteCheckError({ shard: name, path }, message);
}
