import type { ZSTDDecoder } from 'zstddec/stream';

/** The decoder of the zstd project itself as WebAssembly: Node has one of its own only from 22.15 on. */
let decoder: ZSTDDecoder;
let loading: Promise<void> | null = null;

/** Its memory has 32-bit addresses. */
const MOST_BYTES = 1 << 30;
/** A piece of 1 MiB comes in blocks of at most 128 KiB: a decoder that gives nothing so often has met an error, which it does not say. */
const MOST_EMPTY = 1000;

/** To be awaited before anything else here is called. */
export function loadZstd(): Promise<void> {
  loading ??= load();
  return loading;
}

async function load(): Promise<void> {
  const { ZSTDDecoder } = await import('zstddec/stream');
  decoder = new ZSTDDecoder();
  await decoder.init();
}

/** The `length` bytes that were compressed; fewer where they are damaged. Throws RangeError, and WebAssembly's errors. */
export function decompressZstd(stored: Uint8Array, length: number): Uint8Array {
  if (length > MOST_BYTES || stored.length > MOST_BYTES) throw new RangeError('it has more than 1 GiB');
  // To the decoder a length of 0 is one that is not known.
  return length === 0 ? new Uint8Array(0) : decoder.decode(stored, length);
}

/** The same piece by piece, for what does not say how long it is. Throws Error where it is damaged or cut off. */
export function* decompressZstdPieces(pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  let empty = 0;
  for (const bytes of decoder.decodeStreaming(pieces)) {
    empty = bytes.length === 0 ? empty + 1 : 0;
    if (empty > MOST_EMPTY) throw new Error('it is no zstd, or damaged');
    if (bytes.length > 0) yield bytes;
  }
}
