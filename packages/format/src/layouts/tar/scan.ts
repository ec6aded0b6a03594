import type { Source } from '../../source.js';
import { becameShorter } from './faults.js';
import { type TarEntry, TarWalk } from './walk.js';
import { windowOn } from './window.js';

/** One large read: larger ones are no quicker. At least a record of the largest size that the walk takes. */
const READ_BYTES = 2 << 20;
/** A hop from header to header reads this much: enough for a sample's small fields and the next sample's header. */
const HOP_BYTES = 2048;
/** Hopping pays where headers are further apart than this; reading all of it is as quick otherwise. */
const HOP_STRIDE_BYTES = 16 << 10;
/** A hop that takes longer did not come from the page cache: then a large read gets the disk to read ahead. */
const SLOW_HOP_MS = 0.1;
/** After so many hops there is a turn of the event loop, some milliseconds later. */
const HOPS_A_TURN = 1024;
const BATCH_ENTRIES = 256;

/**
 * Yields the files of an archive in their order, some hundreds at a time, without reading payloads where that is
 * avoidable: a cached file is read by hops from header to header, anything else by large reads that skip a payload only
 * where it reaches beyond them. Throws what {@link TarWalk} throws, and `FileError`.
 */
export async function* scanEntries(source: Source): AsyncGenerator<readonly TarEntry[]> {
  let entries: TarEntry[] = [];
  try {
    const walk = new TarWalk(source.location, source.size);
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, source.size));
    let window = windowOn(buffer, 0);
    let hopping = source.readNow !== undefined;
    for (let reads = 0; !walk.done; reads++) {
      const start = walk.position;
      const length = Math.min(Math.max(hopping ? HOP_BYTES : READ_BYTES, walk.needed), source.size - start);
      if (window.bytes.length !== length) window = windowOn(buffer, length);
      const known = entries.length;
      let slow = false;
      let read: number;
      if (hopping && reads % HOPS_A_TURN !== 0) {
        const began = performance.now();
        read = source.readNow!(start, window.bytes);
        slow = performance.now() - began > SLOW_HOP_MS;
      } else {
        read = await source.readAt(start, window.bytes);
      }
      if (read < length) throw becameShorter(source.location, start + read);
      walk.advance(window, entries);
      const stride = (walk.position - start) / Math.max(1, entries.length - known);
      hopping = source.readNow !== undefined && !slow && stride > HOP_STRIDE_BYTES;
      // Whoever reads payloads of what is fetched from afar wants them before they are forgotten again.
      if (entries.length >= BATCH_ENTRIES || (source.readNow === undefined && entries.length > 0)) {
        yield entries;
        entries = [];
      }
    }
  } catch (error) {
    // What stands before the damage is whole.
    if (entries.length > 0) yield entries;
    throw error;
  }
  if (entries.length > 0) yield entries;
}
