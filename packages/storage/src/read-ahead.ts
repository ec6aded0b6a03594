import type { Source } from './storage.js';

/** What is fetched at once, and so many of them are fetched ahead, and kept behind for who comes back a little. */
const CHUNK_BYTES = 4 << 20;
const AHEAD = 4;
const KEPT = 24;

/**
 * A source for who goes through a file from front to back by short reads, coming back a little now and then: it is fetched
 * in long pieces, some ahead, and every byte once as long as nobody comes back further than 64 MiB.
 */
export function readAhead(source: Source): Source {
  const chunks = new Map<number, Promise<Uint8Array>>();
  const { location, size } = source;
  const last = Math.ceil(size / CHUNK_BYTES) - 1;

  const fetch = (chunk: number): Promise<Uint8Array> => {
    const known = chunks.get(chunk);
    if (known !== undefined) return known;
    const offset = chunk * CHUNK_BYTES;
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, size - offset));
    const reading = source.readAt(offset, bytes).then((read) => bytes.subarray(0, read));
    // The error is seen where the chunk is asked for; until then it must not count as unhandled.
    reading.catch(() => chunks.delete(chunk));
    chunks.set(chunk, reading);
    for (const old of chunks.keys()) {
      if (chunks.size <= KEPT) break;
      chunks.delete(old);
    }
    return reading;
  };

  return {
    location,
    size,
    async readAt(offset, target) {
      const end = Math.min(size, offset + target.length);
      for (let at = offset; at < end; ) {
        const chunk = Math.floor(at / CHUNK_BYTES);
        const wanted = fetch(chunk);
        for (let next = chunk + 1; next <= Math.min(last, chunk + AHEAD); next++) void fetch(next);
        const bytes = await wanted;
        const from = at - chunk * CHUNK_BYTES;
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
