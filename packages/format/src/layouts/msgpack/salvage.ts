import { ShardtoolError } from '@shardtool/base';
import { headBytes } from '../../msgpack/object.js';
import { KEY_ENTRY } from '../../sample/sample-codec.js';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import type { SamplePosition } from '../layout.js';
import { SampleWalk } from './walk.js';

const READ_BYTES = 1 << 20;
/** The bytes after a map's head: in our shards `__key__` comes first. */
const FIRST_NAME = Buffer.from([0xa0 + KEY_ENTRY.length, ...Buffer.from(KEY_ENTRY)]);
/** Heads of maps of up to 15, up to 65,535 and more entries. */
const MAP_HEADS = { fixed: 0x80, map16: 0xde, map32: 0xdf } as const;
const LONGEST_HEAD = 5;

/**
 * Searches the whole file for beginnings of samples and walks from each. A sample whose lengths lead into a later
 * sample is damaged, and skipped.
 */
export async function* salvage(source: Source): AsyncGenerator<SamplePosition> {
  const starts = await findStarts(source);
  const known = new Set([...starts, source.size]);
  const file = new FileWindow(source);
  let end = 0;
  for (const [i, start] of starts.entries()) {
    // A payload may contain bytes that look like a beginning.
    if (start < end) continue;
    const sample = await walkOne(source, file, start);
    if (sample === null) continue;
    const behind = start + sample.bytes;
    if (behind > (starts[i + 1] ?? source.size) && !known.has(behind)) continue;
    end = behind;
    yield sample;
  }
}

async function walkOne(source: Source, file: FileWindow, start: number): Promise<SamplePosition | null> {
  const samples: SamplePosition[] = [];
  try {
    const walk = new SampleWalk({ shard: source.location, start, end: source.size });
    while (samples.length === 0) {
      const window = await file.at(walk.position, walk.needed);
      const most = Math.min(window.length, WALKED_BYTES);
      walk.advance(walk.needed > most ? window : window.subarray(0, most), samples);
    }
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
  }
  return samples[0] ?? null;
}

/** A walk continues after the sample as far as its window reaches: a short window limits that. */
const WALKED_BYTES = 4096;

/** The offsets of all maps whose first entry is the key. */
async function findStarts(source: Source): Promise<number[]> {
  const starts: number[] = [];
  const overlap = LONGEST_HEAD + FIRST_NAME.length;
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES + overlap);
  for (let at = 0; at < source.size; at += READ_BYTES) {
    const from = Math.max(0, at - overlap);
    const bytes = buffer.subarray(0, await source.readAt(from, buffer.subarray(0, READ_BYTES + at - from)));
    for (let name = bytes.indexOf(FIRST_NAME); name !== -1; name = bytes.indexOf(FIRST_NAME, name + 1)) {
      const head = mapHeadBefore(bytes, name);
      if (head !== -1 && from + head > (starts.at(-1) ?? -1)) starts.push(from + head);
    }
  }
  return starts;
}

/** The offset of the map head that ends at `end`; -1 if there is none. */
function mapHeadBefore(bytes: Buffer, end: number): number {
  if (end >= 1 && bytes[end - 1]! >> 4 === MAP_HEADS.fixed >> 4) return end - 1;
  for (const first of [MAP_HEADS.map16, MAP_HEADS.map32]) {
    const at = end - headBytes(first);
    if (at >= 0 && bytes[at] === first) return at;
  }
  return -1;
}
