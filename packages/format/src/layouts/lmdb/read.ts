import { DamagedShardError, LruCache, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';
import { becameShorter } from '../bytes/file-window.js';
import { decodeMeta, META_BYTES, type Meta, newestMeta, pageBytesOf, type Tree } from './meta.js';
import { FIRST_DATA_PAGE, PAGE_HEADER_BYTES, PageType, pageNumber, pagesOfRun, pageType, runPages } from './page.js';
import { TreePage } from './tree-page.js';

/** How many branch pages are cached. Branches are few and needed for every look-up. */
const KEPT_BRANCHES = 4096;
const KEPT_LEAVES = 256;
const AT_ONCE_BYTES = 64 << 10;
/** After this many pages the walk yields to the event loop; that is every few milliseconds. */
const PAGES_A_TURN = 1024;

/** One entry of a database. */
export interface LmdbEntry {
  readonly key: Buffer;
  /** Offset of its value in the file. */
  readonly offset: number;
  readonly bytes: number;
  /** The value if it is small and stored in the leaf; null if it is on overflow pages, which begin with `page`. */
  readonly inline: Buffer | null;
  readonly page: number;
}

/**
 * An LMDB file of data format 1 (liblmdb 0.9, 64 bits, little endian), read with positioned reads instead of a memory
 * map, so that damage ends in an error and not in a crash of the process. No page or value outside the file is ever
 * requested, and no memory is allocated for one. The file must not be written to meanwhile.
 */
export class LmdbDatabase {
  /** Number of entries. */
  readonly entries: number;
  readonly pageBytes: number;
  readonly tree: Tree;
  readonly #source: Source;
  readonly #lastPage: number;
  #pagesRead = 0;
  readonly #branches = new LruCache<number, TreePage>(KEPT_BRANCHES);
  readonly #leaves = new LruCache<number, TreePage>(KEPT_LEAVES);

  private constructor(source: Source, meta: Meta) {
    this.#source = source;
    this.#lastPage = meta.lastPage;
    this.tree = meta.main;
    this.entries = meta.main.entries;
    this.pageBytes = meta.pageBytes;
  }

  /**
   * Opens a database. The caller closes the source. Throws {@link UnsupportedShardError} for files of other versions,
   * machines and kinds of database, and {@link DamagedShardError} for any damage.
   */
  static async open(source: Source): Promise<LmdbDatabase> {
    const { location } = source;
    const first = await readWhole(source, 0, META_BYTES);
    const pageBytes = pageBytesOf(first, location);
    const second = await readWhole(source, pageBytes, META_BYTES);
    const metas = [decodeMeta(first, 0, pageBytes, location), decodeMeta(second, 1, pageBytes, location)] as const;
    return new LmdbDatabase(source, newestMeta(metas, [first, second], location));
  }

  /** The value of a key, a string as UTF-8; undefined if there is none. */
  async get(key: string | Uint8Array): Promise<Buffer | undefined> {
    const entry = await this.find(key);
    return entry && this.value(entry);
  }

  /** The position of the value of a key; undefined if there is none. */
  async find(key: string | Uint8Array): Promise<LmdbEntry | undefined> {
    if (this.tree.root === null) return undefined;
    const bytes = Buffer.from(key as string);
    let page = this.tree.root;
    for (let level = 1; level < this.tree.depth; level++) {
      const branch = await this.#page(page, PageType.branch);
      page = branch.child(branch.childFor(bytes));
    }
    const leaf = await this.#page(page, PageType.leaf);
    const index = leaf.lowerBound(bytes);
    if (index === leaf.count || leaf.compare(index, bytes) !== 0) return undefined;
    return this.#entry(leaf, index, page);
  }

  /** Reads the value of an entry. */
  async value(entry: LmdbEntry): Promise<Buffer> {
    if (entry.inline !== null) return Buffer.from(entry.inline);
    const run = await readWhole(this.#source, entry.offset - PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + entry.bytes);
    this.checkRun(run, entry);
    return run.subarray(PAGE_HEADER_BYTES);
  }

  /**
   * All entries in the order of their keys (by byte), or those from `from` on, one leaf at a time. Keys out of order
   * and a count that is not the recorded one are errors, so that no damage causes an endless loop.
   */
  async *scan(from?: string | Uint8Array): AsyncGenerator<readonly LmdbEntry[]> {
    const start = from === undefined ? null : Buffer.from(from as string);
    let last: Buffer | null = null;
    let count = 0;
    for await (const { leaf, page } of this.#leavesFrom(start)) {
      const entries: LmdbEntry[] = [];
      for (let index = 0; index < leaf.count; index++) {
        if (last !== null && leaf.compare(index, last) <= 0) throw this.#damaged(page, 'has keys out of order');
        last = leaf.key(index);
        if (start === null || leaf.compare(index, start) >= 0) entries.push(this.#entry(leaf, index, page));
      }
      count += entries.length;
      if (count > this.entries) throw this.#wrongCount('more than');
      if (entries.length > 0) yield entries;
    }
    if (start === null && count !== this.entries) throw this.#wrongCount(`${count} and not`);
  }

  /** Checks the header before a value on overflow pages. The run may be longer than the value needs. */
  checkRun(header: Buffer, { page, bytes }: LmdbEntry): void {
    if (pageNumber(header) !== page || pageType(header) !== PageType.overflow) {
      throw this.#damaged(page, 'is not the first page of a value');
    }
    const needed = runPages(bytes, this.pageBytes);
    if (pagesOfRun(header) < needed)
      throw this.#damaged(page, `begins a run of ${pagesOfRun(header)} pages instead of ${needed}`);
  }

  /** Leaves from left to right, beginning with the one where `start` is or would be. Never deeper than the tree. */
  async *#leavesFrom(start: Buffer | null): AsyncGenerator<{ leaf: TreePage; page: number }> {
    if (this.tree.root === null) return;
    const { depth } = this.tree;
    /** The branches above the current leaf, and the node taken in each. */
    const path: { branch: TreePage; index: number }[] = [];
    let page = this.tree.root;
    let seek = start;
    for (;;) {
      while (path.length < depth - 1) {
        const branch = await this.#page(page, PageType.branch);
        const index = seek === null ? 0 : branch.childFor(seek);
        path.push({ branch, index });
        page = branch.child(index);
      }
      seek = null;
      yield { leaf: await this.#page(page, PageType.leaf), page };
      while (path.length > 0 && path.at(-1)!.index + 1 === path.at(-1)!.branch.count) path.pop();
      const next = path.at(-1);
      if (next === undefined) return;
      page = next.branch.child(++next.index);
    }
  }

  #entry(leaf: TreePage, index: number, page: number): LmdbEntry {
    const key = leaf.key(index);
    const { bytes, at, page: first } = leaf.value(index);
    if (at !== null) return { key, offset: page * this.pageBytes + at, bytes, inline: leaf.slice(at, bytes), page };
    const last = first! + runPages(bytes, this.pageBytes) - 1;
    if (first! < FIRST_DATA_PAGE || last > this.#lastPage)
      throw this.#damaged(page, `leads to pages ${first} to ${last}`);
    const offset = first! * this.pageBytes + PAGE_HEADER_BYTES;
    if (offset + bytes > this.#source.size) throw this.#cut(first!);
    return { key, offset, bytes, inline: null, page: first! };
  }

  async #page(number: number, type: number): Promise<TreePage> {
    const cache = type === PageType.leaf ? this.#leaves : this.#branches;
    const known = cache.get(number);
    if (known !== undefined) return known;
    if (number < FIRST_DATA_PAGE || number > this.#lastPage) {
      throw this.#damaged(number, `is not between 2 and ${this.#lastPage}`);
    }
    const offset = number * this.pageBytes;
    if (offset + this.pageBytes > this.#source.size) throw this.#cut(number);
    const atOnce = ++this.#pagesRead % PAGES_A_TURN !== 0;
    const bytes = await readWhole(this.#source, offset, this.pageBytes, atOnce);
    const page = TreePage.decode(bytes, number, type);
    if (!(page instanceof TreePage)) {
      if (page.unsupported) throw this.#unsupported(number, page.trouble);
      throw this.#damaged(number, page.trouble);
    }
    cache.set(number, page);
    return page;
  }

  #damaged(page: number, trouble: string): DamagedShardError {
    const shard = this.#source.location;
    const offset = page * this.pageBytes;
    const message = `${shard}: page ${page} (byte ${offset}) ${trouble}; the shard is damaged: fetch or write it again.`;
    return new DamagedShardError({ shard, offset }, message);
  }

  #cut(page: number): TruncatedShardError {
    const { location: shard, size } = this.#source;
    const message = `${shard}: page ${page} is after the end of the shard, at byte ${size}. The shard is truncated: fetch or write it again.`;
    return new TruncatedShardError({ shard, offset: size }, message);
  }

  #unsupported(page: number, trouble: string): UnsupportedShardError {
    const shard = this.#source.location;
    const offset = page * this.pageBytes;
    const message = `${shard}: page ${page} (byte ${offset}) ${trouble}, which shardtool does not read; copy its entries into the main database.`;
    return new UnsupportedShardError({ shard, offset }, message);
  }

  #wrongCount(found: string): DamagedShardError {
    const shard = this.#source.location;
    const message = `${shard}: it has ${found} the ${this.entries} entries that its header records; the shard is damaged: fetch or write it again.`;
    return new DamagedShardError({ shard, offset: 0 }, message);
  }
}

/** Reads exactly these bytes of the file into a new buffer. Short reads are synchronous. */
async function readWhole(
  source: Source,
  offset: number,
  bytes: number,
  atOnce = bytes <= AT_ONCE_BYTES,
): Promise<Buffer> {
  if (offset + bytes > source.size) throw tooShort(source);
  const target = Buffer.allocUnsafeSlow(bytes);
  const read = (atOnce && source.readNow?.(offset, target)) || (await source.readAt(offset, target));
  if (read < bytes) throw becameShorter(source.location, offset + read);
  return target;
}

function tooShort({ location, size }: Source): TruncatedShardError {
  const message = `${location}: it has ${size} bytes, too few for an LMDB database. It is damaged, or not a shard: fetch or write it again.`;
  return new TruncatedShardError({ shard: location, offset: size }, message);
}
