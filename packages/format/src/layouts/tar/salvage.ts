import { ShardtoolError } from '@shardtool/base';
import { type Source, shiftedSource } from '../../source.js';
import type { SamplePosition } from '../layout.js';
import { SampleGrouper } from './group.js';
import { BLOCK_BYTES, decodeHeader, padded } from './header.js';
import { scanEntries } from './scan.js';
import type { TarEntry } from './walk.js';
import { windowOn } from './window.js';

const READ_BLOCKS = 512;

/** Walks from header to header. After a damaged header it continues at the next block with a valid header checksum. */
export async function* salvage(source: Source): AsyncGenerator<SamplePosition> {
  for (let start = await nextHeader(source, 0); start !== -1; ) {
    let end = start;
    try {
      for await (const entries of scanEntries(shiftedSource(source, start))) {
        const found = entries.map((entry) => shifted(entry, start));
        yield* grouped(source.location, found);
        end = padded(found.at(-1)!.offset + found.at(-1)!.bytes);
      }
      return;
    } catch (error) {
      if (!(error instanceof ShardtoolError)) throw error;
    }
    // The header at `end` is the damaged one, unless the walk failed at its first header, at `start`.
    start = await nextHeader(source, end + BLOCK_BYTES);
  }
}

/** Groups entries into samples. If a key is in several batches of entries, its fields end up in several samples. */
function grouped(shard: string, entries: readonly TarEntry[]): SamplePosition[] {
  const samples: SamplePosition[] = [];
  for (const entry of entries) {
    const grouper = new SampleGrouper(shard);
    grouper.push([entry], samples);
    grouper.finish(samples);
  }
  return samples;
}

function shifted(entry: TarEntry, by: number): TarEntry {
  return { ...entry, start: entry.start + by, offset: entry.offset + by };
}

/** The offset of the first block at or after `from` that is a header with a valid checksum; -1 if there is none. */
async function nextHeader(source: Source, from: number): Promise<number> {
  const window = windowOn(Buffer.allocUnsafeSlow(READ_BLOCKS * BLOCK_BYTES), READ_BLOCKS * BLOCK_BYTES);
  for (let at = from; at < source.size; at += window.bytes.length) {
    const blocks = Math.floor((await source.readAt(at, window.bytes)) / BLOCK_BYTES);
    for (let block = 0; block < blocks; block++) {
      if (isHeader(window, block * BLOCK_BYTES)) return at + block * BLOCK_BYTES;
    }
  }
  return -1;
}

function isHeader(window: Parameters<typeof decodeHeader>[0], at: number): boolean {
  try {
    return decodeHeader(window, at, '', 0) !== null;
  } catch {
    return false;
  }
}
