import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompressLz4 } from '../../../parquet/lz4.js';
import { decompressSnappy } from '../../../parquet/snappy.js';
import { decompressZstd, loadZstd } from '../../bytes/zstd.js';

/** Returns exactly `length` bytes, or throws. */
export type Decompress = (stored: Uint8Array, length: number) => Uint8Array;

const ZSTD = 'ZSTD';

/** Page codecs by their names in a footer (Apache Parquet format, Compression.md). The deprecated LZ4 and LZO are not supported. */
const CODECS: Readonly<Record<string, Decompress>> = {
  UNCOMPRESSED: (stored) => stored,
  SNAPPY: decompressSnappy,
  GZIP: (stored, length) => gunzipSync(stored, { maxOutputLength: Math.max(1, length) }),
  BROTLI: (stored, length) => brotliDecompressSync(stored, { maxOutputLength: Math.max(1, length) }),
  LZ4_RAW: decompressLz4,
  [ZSTD]: decompressZstd,
};

export const UNCOMPRESSED = 'UNCOMPRESSED';
export const CODEC_NAMES: readonly string[] = Object.keys(CODECS);

/** Must be awaited before pages of these codecs are decompressed. */
export async function loadCodecs(codecs: ReadonlySet<string>): Promise<void> {
  if (codecs.has(ZSTD)) await loadZstd();
}

/**
 * Decompresses a page. Throws RangeError if the result does not have the length in its header, and an Error of the
 * codec for invalid bytes.
 */
export function decompressed(codec: string, stored: Uint8Array, length: number): Uint8Array {
  const bytes = CODECS[codec]!(stored, length);
  if (bytes.length !== length) throw new RangeError('it has another length than its header says');
  return bytes;
}
