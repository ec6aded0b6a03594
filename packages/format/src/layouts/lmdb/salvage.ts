import { isUtf8 } from 'node:buffer';
import { ShardtoolError } from '@shardtool/base';
import { SIGNATURE_BYTES } from '../../image/kinds.js';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import type { SamplePosition } from '../layout.js';
import { SampleWalk } from '../msgpack/walk.js';
import {
  FIRST_DATA_PAGE,
  NODE_FLAGS_AT,
  NODE_HEADER_BYTES,
  NODE_KEY_BYTES_AT,
  NodeFlag,
  PAGE_BYTES,
  PAGE_HEADER_BYTES,
  PAGE_NUMBER_BYTES,
  PageType,
  POINTER_BYTES,
  pageBounds,
  pageNumber,
  pageType,
  readU64,
} from './page.js';
import { imageOf, isSampleMap } from './samples.js';

const READ_PAGES = 256;

/** A key, and the position of its value in the file. */
interface Entry {
  readonly key: string;
  readonly offset: number;
  readonly bytes: number;
}

/** Looks at every page of the file and takes the entries of all leaves, each entry separately. */
export async function* salvage(source: Source): AsyncGenerator<SamplePosition> {
  const pages = Buffer.allocUnsafeSlow(READ_PAGES * PAGE_BYTES);
  const file = new FileWindow(source);
  for (let first = FIRST_DATA_PAGE; first * PAGE_BYTES < source.size; first += READ_PAGES) {
    const read = await source.readAt(first * PAGE_BYTES, pages);
    for (let at = 0; at + PAGE_BYTES <= read; at += PAGE_BYTES) {
      const entries = leafEntries(pages.subarray(at, at + PAGE_BYTES), first + at / PAGE_BYTES);
      for (const entry of entries) {
        const sample = await sampleOf(entry, source, file);
        if (sample !== null) yield sample;
      }
    }
  }
}

function* leafEntries(page: Buffer, number: number): Generator<Entry> {
  if (pageNumber(page) !== number || pageType(page) !== PageType.leaf) return;
  const lower = Math.min(pageBounds(page).lower, PAGE_BYTES);
  for (let at = PAGE_HEADER_BYTES; at + POINTER_BYTES <= lower; at += POINTER_BYTES) {
    const entry = entryAt(page, page.readUInt16LE(at), number);
    if (entry !== null) yield entry;
  }
}

/** One entry of a leaf; null if it leads out of the page or its key is invalid. mdb.c, MDB_node. */
function entryAt(page: Buffer, node: number, number: number): Entry | null {
  if (node + NODE_HEADER_BYTES > PAGE_BYTES) return null;
  const bytes = page.readUInt32LE(node);
  const hasPages = (page.readUInt16LE(node + NODE_FLAGS_AT) & NodeFlag.bigData) !== 0;
  const value = node + NODE_HEADER_BYTES + page.readUInt16LE(node + NODE_KEY_BYTES_AT);
  if (value + (hasPages ? PAGE_NUMBER_BYTES : bytes) > PAGE_BYTES) return null;
  const text = page.subarray(node + NODE_HEADER_BYTES, value);
  const key = isUtf8(text) ? text.toString() : '';
  if (whyUnsafe(key) !== null) return null;
  const first = hasPages ? readU64(page, value) : number;
  return { key, bytes, offset: first * PAGE_BYTES + (hasPages ? PAGE_HEADER_BYTES : value) };
}

/** Null if the value is outside the file, or is a damaged map. */
async function sampleOf(
  { key, offset, bytes }: Entry,
  source: Source,
  file: FileWindow,
): Promise<SamplePosition | null> {
  const end = offset + bytes;
  if (bytes === 0 || offset < FIRST_DATA_PAGE * PAGE_BYTES || end > source.size) return null;
  const peek = Math.min(bytes, SIGNATURE_BYTES);
  const head = Buffer.from((await file.at(offset, peek)).subarray(0, peek));
  if (!isSampleMap(head)) return { key, offset, bytes, fields: [imageOf(head, offset, bytes)] };
  const samples: SamplePosition[] = [];
  try {
    const walk = new SampleWalk({ shard: source.location, start: offset, end, key });
    while (!walk.done) walk.advance(await file.at(walk.position, walk.needed), samples);
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
  }
  return samples[0] ?? null;
}
