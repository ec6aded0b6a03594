import type { ZSTDDecoder } from 'zstddec/stream';

/** The decoder of the zstd project as WebAssembly: Node has its own only from 22.15 on. */
let decoder: ZSTDDecoder;
let loading: Promise<void> | null = null;

/** Its memory has 32-bit addresses. */
const MOST_BYTES = 1 << 30;
/**
 * A piece of 1 MiB contains blocks of at most 128 KiB: a decoder that returns nothing this often has met an error,
 * which it does not report.
 */
const MOST_EMPTY = 1000;

/** Must be awaited before other functions of this file are called. */
export function loadZstd(): Promise<void> {
  loading ??= load();
  return loading;
}

async function load(): Promise<void> {
  const { ZSTDDecoder } = await import('zstddec/stream');
  decoder = new ZSTDDecoder();
  await decoder.init();
}

/** Decompresses to `length` bytes; fewer if the input is damaged. Throws RangeError, and WebAssembly's errors. */
export function decompressZstd(stored: Uint8Array, length: number): Uint8Array {
  if (length > MOST_BYTES || stored.length > MOST_BYTES) throw new RangeError('it has more than 1 GiB');
  // For the decoder a length of 0 means unknown.
  return length === 0 ? new Uint8Array(0) : decoder.decode(stored, length);
}

/** Decompresses piece by piece, for input of unknown length. Throws Error if it is damaged or truncated. */
export function* decompressZstdPieces(pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  let empty = 0;
  for (const bytes of decoder.decodeStreaming(pieces)) {
    empty = bytes.length === 0 ? empty + 1 : 0;
    if (empty > MOST_EMPTY) throw new Error('it is not zstd, or damaged');
    if (bytes.length > 0) yield bytes;
  }
}
