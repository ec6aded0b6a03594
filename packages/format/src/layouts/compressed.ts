import { UnsupportedShardError } from '@shardtool/base';
import type { Source } from '../source.js';

/** A way to compress a whole file. */
export interface Compression {
  readonly name: string;
  /** The command that decompresses such a file; with `-c` to standard output. */
  readonly command: string;
}

const GZIP: Compression = { name: 'gzip', command: 'gunzip' };

/** Compressions by the first bytes of a file (latin1). */
const COMPRESSIONS: readonly (readonly [begins: readonly string[], compression: Compression])[] = [
  [['\x1f\x8b\x08'], GZIP],
  [['\x28\xb5\x2f\xfd'], { name: 'zstd', command: 'zstd -d' }],
  [['\xfd7zXZ\0'], { name: 'xz', command: 'xz -d' }],
  // The block size in hundreds of kB, and the digits of pi.
  [Array.from('123456789', (size) => `BZh${size}1AY&SY`), { name: 'bzip2', command: 'bzip2 -d' }],
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

export async function isGzip(source: Source): Promise<boolean> {
  return (await compressionOfSource(source)) === GZIP;
}

/** The error for a shard that is compressed as a whole, with a remedy. */
export function compressedWhole(shard: string, { name, command }: Compression): UnsupportedShardError {
  const message =
    name === GZIP.name
      ? `${shard}: it is compressed with gzip, so its samples cannot be read individually. Convert it with "shardtool convert", or decompress it with "gunzip".`
      : `${shard}: it is compressed with ${name}, which shardtool does not read. Decompress it with "${command}", or convert it in a pipe ("${command} -c FILE | shardtool convert - OUTPUT").`;
  return new UnsupportedShardError({ shard }, message);
}
