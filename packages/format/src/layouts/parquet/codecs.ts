import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompress as decompressZstd } from 'fzstd';
import { decompressSnappy } from '../../parquet/snappy.js';

/** Gives exactly `length` bytes, or throws. */
export type Decompress = (stored: Uint8Array, length: number) => Uint8Array;

/** Codecs of pages by their names in a footer (Apache Parquet format, Compression.md). LZ4 and LZO are not read. */
const CODECS: Readonly<Record<string, Decompress>> = {
  UNCOMPRESSED: (stored) => stored,
  SNAPPY: decompressSnappy,
  GZIP: (stored, length) => gunzipSync(stored, { maxOutputLength: Math.max(1, length) }),
  BROTLI: (stored, length) => brotliDecompressSync(stored, { maxOutputLength: Math.max(1, length) }),
  ZSTD: (stored, length) => decompressZstd(stored, new Uint8Array(length)),
};

export const UNCOMPRESSED = 'UNCOMPRESSED';
export const CODEC_NAMES: readonly string[] = Object.keys(CODECS);

/** The bytes of a page. Throws RangeError where they are not as many as its header says, and what the codec throws. */
export function decompressed(codec: string, stored: Uint8Array, length: number): Uint8Array {
  const bytes = CODECS[codec]!(stored, length);
  if (bytes.length !== length) throw new RangeError('it has another length than its header says');
  return bytes;
}
