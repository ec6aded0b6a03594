import type { Source } from '../storage.js';

/** Size of a piece, and the number of pieces that are fetched ahead and kept behind for a reader that steps back a little. */
const CHUNK_BYTES = 4 << 20;
const AHEAD = 4;
const KEPT = 24;

/** Size of a piece, number of pieces fetched ahead, and number of pieces kept. Defaults: those of {@link readAhead}. */
export interface ReadAheadOptions {
  readonly chunkBytes?: number;
  readonly ahead?: number;
  readonly kept?: number;
}

/**
 * A source for readers that go through a file from front to back with short reads, with small steps back. It fetches
 * the file in long pieces, some of them ahead. Every byte is fetched once, as long as the reader does not step back
 * further than 64 MiB.
 */
export function readAhead(source: Source, options: ReadAheadOptions = {}): Source {
  const { chunkBytes = CHUNK_BYTES, ahead = AHEAD, kept = KEPT } = options;
  const chunks = new Map<number, Promise<Uint8Array>>();
  const { location, size } = source;
  const last = Math.ceil(size / chunkBytes) - 1;

  const fetch = (chunk: number): Promise<Uint8Array> => {
    const known = chunks.get(chunk);
    if (known !== undefined) return known;
    const offset = chunk * chunkBytes;
    const bytes = new Uint8Array(Math.min(chunkBytes, size - offset));
    const reading = source.readAt(offset, bytes).then((read) => bytes.subarray(0, read));
    // The error is reported when the chunk is read. Until then it must not count as unhandled.
    reading.catch(() => chunks.delete(chunk));
    chunks.set(chunk, reading);
    for (const old of chunks.keys()) {
      if (chunks.size <= kept) break;
      chunks.delete(old);
    }
    return reading;
  };

  return {
    location,
    size,
    ...(source.sibling && { sibling: source.sibling }),
    get version() {
      return source.version;
    },
    async readAt(offset, target) {
      const end = Math.min(size, offset + target.length);
      for (let at = offset; at < end; ) {
        const chunk = Math.floor(at / chunkBytes);
        const wanted = fetch(chunk);
        for (let next = chunk + 1; next <= Math.min(last, chunk + ahead); next++) void fetch(next);
        const bytes = await wanted;
        const from = at - chunk * chunkBytes;
        const part = bytes.subarray(from, from + end - at);
        if (part.length === 0) return at - offset;
        target.set(part, at - offset);
        at += part.length;
      }
      return Math.max(0, end - offset);
    },
    async close() {
      await Promise.allSettled(chunks.values());
      chunks.clear();
      await source.close();
    },
  };
}
