import { UnsupportedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';
import type { WholeCodec } from './unpacked.js';

/** A way to compress a whole file. */
export interface Compression {
  readonly name: string;
  /** The command that decompresses such a file; with `-c` to standard output. */
  readonly command: string;
  /** The codec of {@link unpacked} that decompresses it. Absent: shardtool does not read such files. */
  readonly codec?: WholeCodec;
}

/** Compressions by the first bytes of a file (latin1). */
const COMPRESSIONS: readonly (readonly [begins: readonly string[], compression: Compression])[] = [
  [['\x1f\x8b\x08'], { name: 'gzip', command: 'gunzip', codec: 'gz' }],
  [['\x28\xb5\x2f\xfd'], { name: 'zstd', command: 'zstd -d', codec: 'zstd' }],
  [['\xfd7zXZ\0'], { name: 'xz', command: 'xz -d', codec: 'xz' }],
  // The block size in hundreds of kB, and the digits of pi.
  [Array.from('123456789', (size) => `BZh${size}1AY&SY`), { name: 'bzip2', command: 'bzip2 -d', codec: 'bz2' }],
  [['\x04\x22\x4d\x18', '\x02\x21\x4c\x18'], { name: 'lz4', command: 'lz4 -d' }],
  [['LZIP\x01'], { name: 'lzip', command: 'lzip -d' }],
  [['\x1f\x9d'], { name: 'compress', command: 'uncompress' }],
];

/** How many bytes suffice to recognise a compression. */
const BEGIN_BYTES = 10;

/** The compression of a file that begins with these bytes; null if none is recognised. */
export function compressionOf(begin: Uint8Array): Compression | null {
  const text = Buffer.from(begin.subarray(0, BEGIN_BYTES)).toString('latin1');
  return COMPRESSIONS.find(([begins]) => begins.some((bytes) => text.startsWith(bytes)))?.[1] ?? null;
}

export async function compressionOfSource(source: Source): Promise<Compression | null> {
  const begin = new Uint8Array(BEGIN_BYTES);
  return compressionOf(begin.subarray(0, await source.readAt(0, begin)));
}

/** The codec that decompresses a file; null if it is not compressed, or in a way that shardtool does not read. */
export async function codecOfSource(source: Source): Promise<WholeCodec | null> {
  return (await compressionOfSource(source))?.codec ?? null;
}

/** The error for a shard that is compressed as a whole, with a remedy. */
export function compressedWhole(shard: string, { name, command, codec }: Compression): UnsupportedShardError {
  const message =
    codec !== undefined
      ? `${shard}: it is compressed with ${name}, so its samples cannot be read individually. Convert it with "shardtool convert", or decompress it with "${command}".`
      : `${shard}: it is compressed with ${name}, which shardtool does not read. Decompress it with "${command}", or convert it in a pipe ("${command} -c FILE | shardtool convert - OUTPUT").`;
  return new UnsupportedShardError({ shard }, message);
}
