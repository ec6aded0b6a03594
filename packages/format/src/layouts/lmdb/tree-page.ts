import { partitionPoint } from '@shardtool/base';
import { compareKey } from './compare.js';
import {
  FIRST_DATA_PAGE,
  NODE_FLAGS_AT,
  NODE_HEADER_BYTES,
  NODE_KEY_BYTES_AT,
  NodeFlag,
  PAGE_HEADER_BYTES,
  PAGE_NUMBER_BYTES,
  PageType,
  POINTER_BYTES,
  pageBounds,
  pageNumber,
  pageType,
  readU64,
} from './page.js';

/** The position of a leaf's value. */
export interface LeafValue {
  readonly bytes: number;
  /** Offset in the leaf; null if the value is on overflow pages. */
  readonly at: number | null;
  /** The number of its first overflow page; null if it is in the leaf. */
  readonly page: number | null;
}

/** Why a page cannot be read, to continue "page N ...". `unsupported` if it is intact but of an unsupported kind. */
export interface PageTrouble {
  readonly trouble: string;
  readonly unsupported?: boolean;
}

/** A branch or a leaf. All its contents were checked when it was decoded, so none of its offsets leads out of it. */
export class TreePage {
  readonly count: number;
  readonly #page: Buffer;

  private constructor(page: Buffer, count: number) {
    this.#page = page;
    this.count = count;
  }

  /** Checks and decodes a page. `number` is its expected number, `type` its expected type. */
  static decode(page: Buffer, number: number, type: number): TreePage | PageTrouble {
    if (pageNumber(page) !== number) return { trouble: `claims to be page ${pageNumber(page)}` };
    if (pageType(page) !== type) {
      return { trouble: `is not a ${type === PageType.leaf ? 'leaf' : 'branch'} (type ${pageType(page)})` };
    }
    const { lower, upper } = pageBounds(page);
    if (lower <= PAGE_HEADER_BYTES || lower > upper || upper > page.length || lower % 2 !== 0) {
      return { trouble: `has wrong bounds (${lower} and ${upper})` };
    }
    const decoded = new TreePage(page, (lower - PAGE_HEADER_BYTES) / POINTER_BYTES);
    for (let i = 0; i < decoded.count; i++) {
      const trouble = type === PageType.leaf ? decoded.#leafTrouble(i, upper) : decoded.#branchTrouble(i, upper);
      if (trouble !== null) return trouble;
    }
    return decoded;
  }

  key(index: number): Buffer {
    const node = this.#node(index);
    return this.#page.subarray(node + NODE_HEADER_BYTES, node + NODE_HEADER_BYTES + this.#keyBytes(node));
  }

  /** The page below node `index` of a branch. */
  child(index: number): number {
    const node = this.#node(index);
    return this.#page.readUInt16LE(node + NODE_FLAGS_AT) * 2 ** 32 + this.#page.readUInt32LE(node);
  }

  /** The value of node `index` of a leaf. */
  value(index: number): LeafValue {
    const node = this.#node(index);
    const bytes = this.#page.readUInt32LE(node);
    const at = node + NODE_HEADER_BYTES + this.#keyBytes(node);
    const isInline = (this.#page[node + NODE_FLAGS_AT]! & NodeFlag.bigData) === 0;
    return isInline ? { bytes, at, page: null } : { bytes, at: null, page: readU64(this.#page, at) };
  }

  /** A part of the page. */
  slice(at: number, bytes: number): Buffer {
    return this.#page.subarray(at, at + bytes);
  }

  /** The first node from `low` on whose key is not less than `key`, or `count`. */
  lowerBound(key: Buffer, low = 0): number {
    return partitionPoint(low, this.count, (index) => this.compare(index, key) < 0);
  }

  /** Negative if the node's key sorts before `key`, 0 if they are equal. */
  compare(index: number, key: Buffer): number {
    const node = this.#node(index);
    const start = node + NODE_HEADER_BYTES;
    return compareKey(this.#page, start, start + this.#keyBytes(node), key);
  }

  /** Which node of a branch leads to `key`: the last whose key is not greater. The first node's key does not count. */
  childFor(key: Buffer): number {
    const index = this.lowerBound(key, 1);
    return index < this.count && this.compare(index, key) === 0 ? index : index - 1;
  }

  #node(index: number): number {
    return u16(this.#page, PAGE_HEADER_BYTES + POINTER_BYTES * index);
  }

  #keyBytes(node: number): number {
    return u16(this.#page, node + NODE_KEY_BYTES_AT);
  }

  #branchTrouble(index: number, upper: number): PageTrouble | null {
    const node = this.#node(index);
    if (this.#isOutside(node, upper, 0)) return overrun(index);
    return this.child(index) < FIRST_DATA_PAGE ? { trouble: `leads to page ${this.child(index)}` } : null;
  }

  #leafTrouble(index: number, upper: number): PageTrouble | null {
    const node = this.#node(index);
    if (this.#isOutside(node, upper, 0)) return overrun(index);
    const flags = u16(this.#page, node + NODE_FLAGS_AT);
    if ((flags & ~(NodeFlag.bigData | NodeFlag.subDatabase)) !== 0) {
      return { trouble: `has an entry with unknown flags (${flags})` };
    }
    const stored = (flags & NodeFlag.bigData) !== 0 ? PAGE_NUMBER_BYTES : this.#page.readUInt32LE(node);
    if (this.#keyBytes(node) === 0 || this.#isOutside(node, upper, stored)) return overrun(index);
    if ((flags & NodeFlag.subDatabase) === 0) return null;
    return { trouble: 'has a named database', unsupported: true };
  }

  /** Whether a node with its key and `more` bytes does not fit between `upper` and the page's end. */
  #isOutside(node: number, upper: number, more: number): boolean {
    const size = this.#page.length;
    if (node < upper || node + NODE_HEADER_BYTES > size) return true;
    return node + NODE_HEADER_BYTES + this.#keyBytes(node) + more > size;
  }
}

/** Without the checks of `readUInt16LE`: a page has a hundred nodes, and all are examined. */
function u16(page: Uint8Array, at: number): number {
  return page[at]! | (page[at + 1]! << 8);
}

function overrun(index: number): PageTrouble {
  return { trouble: `has an entry that overruns it (number ${index})` };
}
