import type { WriteBuffer } from '../../bytes/write-buffer.js';
import {
  encodeBranchNode,
  encodeLeafNode,
  even,
  fitsLeaf,
  NODE_HEADER_BYTES,
  NodeFlag,
  PAGE_BYTES,
  PAGE_HEADER_BYTES,
  PAGE_NUMBER_BYTES,
  PageType,
  POINTER_BYTES,
  writeU64,
} from '../page.js';
import { PageBuilder } from './page-builder.js';
import type { ShardKeys } from './shard-keys.js';
import type { SmallValues } from './small-values.js';

/** The entries of a database, numbered in order of arrival. */
export interface Entries {
  readonly keys: ShardKeys;
  /** Their numbers in the order of their keys. */
  readonly order: Uint32Array;
  readonly valueBytes: Float64Array;
  /** The first page of a value on overflow pages; for any other value, its place in `small`. */
  readonly valuePlace: Float64Array;
  readonly small: SmallValues;
  /** Output: the offset of each value in the file. */
  readonly valueOffset: Float64Array;
}

/** Pages of one level, contiguous in the file. */
interface Level {
  readonly firstPage: number;
  /** For each page: the position in the order of the first key of its leftmost leaf. */
  readonly firsts: readonly number[];
}

/** Writes leaves and branches after the values, the root last. Pages are filled as far as possible. */
export function writeTree(output: WriteBuffer, entries: Entries) {
  if (entries.order.length === 0) return { depth: 0, root: null, leafPages: 0, branchPages: 0 };
  let level = writeLeaves(output, entries);
  const leafPages = level.firsts.length;
  let branchPages = 0;
  let depth = 1;
  for (; level.firsts.length > 1; depth++) {
    level = writeBranches(output, level, entries);
    branchPages += level.firsts.length;
  }
  return { depth, root: level.firstPage, leafPages, branchPages };
}

function writeLeaves(output: WriteBuffer, entries: Entries): Level {
  const { keys, order, valueBytes } = entries;
  const firsts: number[] = [];
  let leaf = new PageBuilder(output, PageType.leaf);
  const firstPage = leaf.number;
  for (let at = 0; at < order.length; at++) {
    const entry = order[at]!;
    const keyBytes = keys.length(entry);
    const inline = fitsLeaf(keyBytes, valueBytes[entry]!, PAGE_BYTES);
    const nodeBytes = NODE_HEADER_BYTES + keyBytes + (inline ? valueBytes[entry]! : PAGE_NUMBER_BYTES);
    if (!leaf.fits(nodeBytes)) {
      leaf.finish();
      leaf = new PageBuilder(output, PageType.leaf);
    }
    if (firstPage + firsts.length === leaf.number) firsts.push(at);
    writeLeafNode(leaf, leaf.place(nodeBytes), entry, inline, entries);
  }
  leaf.finish();
  return { firstPage, firsts };
}

function writeLeafNode(leaf: PageBuilder, at: number, entry: number, inline: boolean, entries: Entries): void {
  const { keys, small, valueOffset } = entries;
  const { page } = leaf;
  const bytes = entries.valueBytes[entry]!;
  const place = entries.valuePlace[entry]!;
  encodeLeafNode(page, at, bytes, inline ? 0 : NodeFlag.bigData, keys.length(entry));
  keys.bytes.copy(page, at + NODE_HEADER_BYTES, keys.start(entry), keys.end(entry));
  const valueAt = at + NODE_HEADER_BYTES + keys.length(entry);
  if (inline) {
    const sum = small.copy(place, bytes, page, valueAt);
    leaf.take({ offset: valueAt, bytes, crc32: sum });
    valueOffset[entry] = leaf.number * PAGE_BYTES + valueAt;
  } else {
    writeU64(page, valueAt, place);
    valueOffset[entry] = place * PAGE_BYTES + PAGE_HEADER_BYTES;
  }
}

function writeBranches(output: WriteBuffer, children: Level, entries: Entries): Level {
  const { keys, order } = entries;
  const { firsts } = children;
  const separatorBytes = (child: number) => (child === 0 ? 0 : shortestSeparator(keys, order, firsts[child]!));
  const starts = branchStarts(firsts.length, separatorBytes);
  const firstPage = output.position / PAGE_BYTES;
  for (const [i, start] of starts.entries()) {
    const branch = new PageBuilder(output, PageType.branch);
    for (let child = start; child < (starts[i + 1] ?? firsts.length); child++) {
      // The first node needs no key: everything before the second one's is below it.
      const keyBytes = child === start ? 0 : separatorBytes(child);
      const at = branch.place(NODE_HEADER_BYTES + keyBytes);
      encodeBranchNode(branch.page, at, children.firstPage + child, keyBytes);
      const keyStart = keys.start(order[firsts[child]!]!);
      keys.bytes.copy(branch.page, at + NODE_HEADER_BYTES, keyStart, keyStart + keyBytes);
    }
    branch.finish();
  }
  return { firstPage, firsts: starts.map((start) => firsts[start]!) };
}

/**
 * Splits the children of a level into branch pages and returns the first child of each. A page takes as many as fit,
 * but no page gets a single child: liblmdb ends the process if it finds such a page.
 */
export function branchStarts(children: number, separatorBytes: (child: number) => number): number[] {
  const starts: number[] = [];
  let room = 0;
  for (let child = 0; child < children; child++) {
    const bytes = even(NODE_HEADER_BYTES + separatorBytes(child)) + POINTER_BYTES;
    if (child === 0 || bytes > room) {
      starts.push(child);
      room = PAGE_BYTES - PAGE_HEADER_BYTES - NODE_HEADER_BYTES - POINTER_BYTES;
    } else {
      room -= bytes;
    }
  }
  const last = starts.length - 1;
  if (last > 0 && starts[last] === children - 1) starts[last]!--;
  return starts;
}

/** The length of the prefix that distinguishes the key at this position in the order from the key before it. */
function shortestSeparator(keys: ShardKeys, order: Uint32Array, at: number): number {
  return keys.commonBytes(order[at - 1]!, order[at]!) + 1;
}
