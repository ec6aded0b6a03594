import { DamagedShardError, UnsupportedShardError } from '@shardtool/base';
import { encodePageHeader, FIRST_DATA_PAGE, PageType, pageType, readU64, writeU64 } from './page.js';

/** The two meta pages (mdb.c: MDB_meta, MDB_db). The one with the higher transaction number is valid. */

/** How many bytes of a meta page are read. */
export const META_BYTES = 152;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 1;
/** mdb.c, CURSOR_STACK. */
const MAX_DEPTH = 32;
const MIN_PAGE_BYTES = 256;
const MAX_PAGE_BYTES = 32768;
/** Room that the memory map of other readers has after the data. */
const MAP_SLACK_BYTES = 1 << 20;

/** Offsets in a meta page, its header included. */
const MAGIC_AT = 16;
const VERSION_AT = 20;
const MAP_SIZE_AT = 32;
/** The record of the database of free pages. Its first word is the page size. */
const FREE_AT = 40;
const MAIN_AT = 88;
const LAST_PAGE_AT = 136;
const TRANSACTION_AT = 144;

/** Offsets in a database's record. */
const FLAGS = 4;
const DEPTH = 6;
const BRANCH_PAGES = 8;
const LEAF_PAGES = 16;
const RUN_PAGES = 24;
const ENTRIES = 32;
const ROOT = 40;
const NO_ROOT = 0xffffffffffffffffn;

const REFUSED_FLAGS: readonly (readonly [flag: number, name: string])[] = [
  [0x04, 'duplicate keys (MDB_DUPSORT)'],
  [0x02, 'reversed keys (MDB_REVERSEKEY)'],
  [0x08, 'integer keys (MDB_INTEGERKEY)'],
];
const INTEGER_KEYS = 0x08;

/** The tree of a database, and its page counts. */
export interface Tree {
  /** Levels of pages; 0 if empty. */
  readonly depth: number;
  readonly entries: number;
  /** Page number; null if empty. */
  readonly root: number | null;
  readonly branchPages: number;
  readonly leafPages: number;
  /** Pages of values that are not in leaves. */
  readonly runPages: number;
}

export interface Meta {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: bigint;
  readonly main: Tree;
}

/** The page size, from the first bytes of a file. Throws an error that names the kind of any other file. */
export function pageBytesOf(head: Buffer, shard: string): number {
  if (head.readUInt32LE(MAGIC_AT) !== MAGIC) throw notThisKind(head, shard);
  const version = head.readUInt32LE(VERSION_AT);
  if (version !== DATA_VERSION) throw unsupported(shard, `has the LMDB data format of version ${version}`);
  const pageBytes = head.readUInt32LE(FREE_AT);
  if (pageBytes < MIN_PAGE_BYTES || pageBytes > MAX_PAGE_BYTES || (pageBytes & (pageBytes - 1)) !== 0) {
    throw damaged(shard, FREE_AT, `names a page size of ${pageBytes}`);
  }
  return pageBytes;
}

/** Reads meta page 0 or 1. Both pages of a file must be valid; liblmdb requires this too. */
export function decodeMeta(page: Buffer, index: number, pageBytes: number, shard: string): Meta {
  const transaction = page.readBigUInt64LE(TRANSACTION_AT);
  const meta = { pageBytes, lastPage: readU64(page, LAST_PAGE_AT), transaction, main: decodeTree(page) };
  const { depth, root, entries } = meta.main;
  const checks: readonly (readonly [right: boolean, what: string])[] = [
    [page.readUInt32LE(MAGIC_AT) === MAGIC, 'magic number'],
    [page.readUInt32LE(VERSION_AT) === DATA_VERSION, 'version'],
    [(pageType(page) & PageType.meta) !== 0, 'type'],
    [page.readUInt32LE(FREE_AT) === pageBytes, 'page size'],
    [meta.lastPage >= FIRST_DATA_PAGE - 1, 'last page'],
    [depth <= MAX_DEPTH && (root === null) === (depth === 0), 'depth'],
    [root === null || (root >= FIRST_DATA_PAGE && root <= meta.lastPage), 'root'],
    [root === null ? entries === 0 : entries > 0, 'number of entries'],
    [transaction === 0n || Number(transaction & 1n) === index, 'transaction'],
  ];
  const wrong = checks.find(([right]) => !right);
  if (wrong !== undefined) throw damaged(shard, index * pageBytes, `has a wrong ${wrong[1]}`);
  return meta;
}

/** The newer of the two, if its main database can be read. Throws for flags that change the order of keys. */
export function newestMeta(metas: readonly [Meta, Meta], pages: readonly [Buffer, Buffer], shard: string): Meta {
  const newest = metas[1].transaction > metas[0].transaction ? 1 : 0;
  const flags = pages[newest].readUInt16LE(MAIN_AT + FLAGS);
  const refused = REFUSED_FLAGS.find(([flag]) => (flags & flag) !== 0);
  if (refused !== undefined) throw unsupported(shard, `has ${refused[1]}`);
  return metas[newest];
}

/** Both meta pages of a new file: an empty one, then one with the tree, as `mdb_copy -c` writes them. */
export function encodeMetas(tree: Tree, lastPage: number, pageBytes: number): Buffer {
  const pages = Buffer.alloc(2 * pageBytes);
  const mapBytes = (lastPage + 1) * pageBytes + MAP_SLACK_BYTES;
  const empty: Tree = { depth: 0, entries: 0, root: null, branchPages: 0, leafPages: 0, runPages: 0 };
  const common = { pageBytes, mapBytes };
  encodeMeta(pages.subarray(0, pageBytes), 0, { ...common, transaction: 0n, tree: empty, lastPage: 1 });
  const transaction = tree.root === null ? 0n : 1n;
  encodeMeta(pages.subarray(pageBytes), 1, { ...common, transaction, tree, lastPage });
  return pages;
}

interface NewMeta {
  readonly pageBytes: number;
  readonly mapBytes: number;
  readonly transaction: bigint;
  readonly tree: Tree;
  readonly lastPage: number;
}

function encodeMeta(page: Buffer, index: number, meta: NewMeta): void {
  encodePageHeader(page, index, PageType.meta);
  page.writeUInt32LE(MAGIC, MAGIC_AT);
  page.writeUInt32LE(DATA_VERSION, VERSION_AT);
  writeU64(page, MAP_SIZE_AT, meta.mapBytes);
  page.writeUInt32LE(meta.pageBytes, FREE_AT);
  page.writeUInt16LE(INTEGER_KEYS, FREE_AT + FLAGS);
  page.writeBigUInt64LE(NO_ROOT, FREE_AT + ROOT);
  const { depth, entries, root, branchPages, leafPages, runPages } = meta.tree;
  page.writeUInt16LE(depth, MAIN_AT + DEPTH);
  writeU64(page, MAIN_AT + BRANCH_PAGES, branchPages);
  writeU64(page, MAIN_AT + LEAF_PAGES, leafPages);
  writeU64(page, MAIN_AT + RUN_PAGES, runPages);
  writeU64(page, MAIN_AT + ENTRIES, entries);
  page.writeBigUInt64LE(root === null ? NO_ROOT : BigInt(root), MAIN_AT + ROOT);
  writeU64(page, LAST_PAGE_AT, meta.lastPage);
  page.writeBigUInt64LE(meta.transaction, TRANSACTION_AT);
}

function decodeTree(page: Buffer): Tree {
  const hasRoot = page.readBigUInt64LE(MAIN_AT + ROOT) !== NO_ROOT;
  return {
    depth: page.readUInt16LE(MAIN_AT + DEPTH),
    entries: readU64(page, MAIN_AT + ENTRIES),
    root: hasRoot ? readU64(page, MAIN_AT + ROOT) : null,
    branchPages: readU64(page, MAIN_AT + BRANCH_PAGES),
    leafPages: readU64(page, MAIN_AT + LEAF_PAGES),
    runPages: readU64(page, MAIN_AT + RUN_PAGES),
  };
}

/** The error for a file of another machine or version, which has its magic number at another offset. */
function notThisKind(head: Buffer, shard: string): Error {
  if (head.readUInt32BE(MAGIC_AT) === MAGIC || head.readUInt32BE(12) === MAGIC) {
    return unsupported(shard, 'was written by LMDB on a big-endian machine');
  }
  if (head.readUInt32LE(12) === MAGIC) return unsupported(shard, 'was written by LMDB on a 32-bit machine');
  if (head.readUInt32LE(24) === MAGIC) {
    return unsupported(shard, `was written by LMDB 1.x (data format ${head.readUInt32LE(28)})`);
  }
  return damaged(shard, 0, 'is not an LMDB database');
}

function unsupported(shard: string, trouble: string): UnsupportedShardError {
  const message = `${shard}: this file ${trouble}, which shardtool does not read; copy it into a plain database of LMDB 0.9 (mdb_dump, mdb_load).`;
  return new UnsupportedShardError({ shard }, message);
}

function damaged(shard: string, offset: number, trouble: string): DamagedShardError {
  const message = `${shard}: the meta page at byte ${offset} ${trouble}; the shard is damaged, or this is not a shard: fetch or write it again.`;
  return new DamagedShardError({ shard, offset }, message);
}
