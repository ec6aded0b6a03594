import { crc32, crc32Combine } from '@shardtool/base';
import { putVarint } from '../../../parquet/varint.js';
import type { ColumnValue } from '../../../sample/label-column.js';
import type { WriteBuffer } from '../../bytes/write-buffer.js';
import { encodeDataPage, type Leaf, type LeafChunk } from '../file-schema.js';

/** Arrow's page size. A longer value gets its own page. */
const PAGE_BYTES = 1 << 20;
const LENGTH_BYTES = 4;
/** How many pages are kept for the next row group. */
const MOST_SPARE = 64;

interface PageAhead {
  readonly memory: Buffer;
  bytes: number;
  /** The checksum that its bytes should have. */
  crc32: number;
  readonly levels: number[];
}

/** Memory for pages, reused: new memory costs more than the copy into it. */
export class SparePages {
  readonly #spare: Buffer[] = [];

  take(bytes: number): Buffer {
    return (bytes <= PAGE_BYTES ? this.#spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(Math.max(bytes, PAGE_BYTES));
  }

  give(memory: Buffer): void {
    if (memory.length === PAGE_BYTES && this.#spare.length < MOST_SPARE) this.#spare.push(memory);
  }
}

/** The values of one leaf, encoded in pages, until their row group is written. */
export class PagesAhead {
  readonly #leaf: Leaf;
  readonly #spare: SparePages;
  #pages: PageAhead[] = [];

  constructor(leaf: Leaf, spare: SparePages) {
    this.#leaf = leaf;
    this.#spare = spare;
  }

  /** Room for a value of that many bytes. The value counts once {@link keep} is called. */
  room(bytes: number): Uint8Array {
    const page = this.#pageFor(LENGTH_BYTES + bytes);
    page.memory.writeUInt32LE(bytes, page.bytes);
    return page.memory.subarray(page.bytes + LENGTH_BYTES, page.bytes + LENGTH_BYTES + bytes);
  }

  /** Commits the value in {@link room} as the next row. `sum` is its checksum at the source. */
  keep(bytes: number, sum: number): void {
    const page = this.#pages.at(-1)!;
    const length = page.memory.subarray(page.bytes, page.bytes + LENGTH_BYTES);
    page.crc32 = crc32Combine(crc32(length, page.crc32), sum, bytes);
    page.bytes += LENGTH_BYTES + bytes;
    page.levels.push(this.#leaf.maxLevel);
  }

  /** Adds a row without a value; its parents are present up to `level`. */
  skip(level: number): void {
    this.#pageFor(0).levels.push(level);
  }

  /** Adds a single value for the next row. */
  add(value: Exclude<ColumnValue, null>): void {
    const { type, maxLevel } = this.#leaf;
    if (type === 'text') {
      const text = Buffer.from(String(value));
      this.room(text.length).set(text);
      this.keep(text.length, crc32(text));
      return;
    }
    const bytes = type === 'bool' ? 1 : 8;
    const page = this.#pageFor(bytes);
    if (type === 'bool') page.memory[page.bytes] = value ? 1 : 0;
    else if (type === 'double') page.memory.writeDoubleLE(Number(value), page.bytes);
    else page.memory.writeBigInt64LE(BigInt(value), page.bytes);
    page.crc32 = crc32(page.memory.subarray(page.bytes, page.bytes + bytes), page.crc32);
    page.bytes += bytes;
    page.levels.push(maxLevel);
  }

  /** Writes the pages and clears them. */
  write(output: WriteBuffer): LeafChunk {
    const offset = output.position;
    if (this.#pages.length === 0) this.#pages.push({ memory: this.#spare.take(0), bytes: 0, crc32: 0, levels: [] });
    for (const { memory, bytes, crc32: sum, levels } of this.#pages) {
      const isPacked = this.#leaf.type === 'bool';
      const values = isPacked ? packed(memory.subarray(0, bytes)) : memory.subarray(0, bytes);
      const encoded = encodeRuns(levels);
      const header = encodeDataPage(levels.length, LENGTH_BYTES + encoded.length + values.length);
      const front = output.room(header.length + LENGTH_BYTES + encoded.length);
      front.set(header);
      front.writeUInt32LE(encoded.length, header.length);
      front.set(encoded, header.length + LENGTH_BYTES);
      output.append(front.length);
      output.write(values, isPacked ? crc32(values) : sum);
      this.#spare.give(memory);
    }
    this.#pages = [];
    return { offset, bytes: output.position - offset };
  }

  #pageFor(bytes: number): PageAhead {
    const last = this.#pages.at(-1);
    if (last !== undefined && last.bytes + bytes <= last.memory.length) return last;
    // The page was made for a value that was not kept.
    if (last?.levels.length === 0) this.#pages.pop();
    const page = { memory: this.#spare.take(bytes), bytes: 0, crc32: 0, levels: [] };
    this.#pages.push(page);
    return page;
  }
}

/** One bit per value, the lowest bit first. */
function packed(values: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  for (const [i, value] of values.entries()) bits[i >> 3]! |= value << (i & 7);
  return bits;
}

/** Levels as runs of equal ones. Apache Parquet format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)". */
function encodeRuns(levels: readonly number[]): Uint8Array {
  const runs = new Uint8Array(levels.length * 6 + 8);
  let at = 0;
  for (let start = 0, end = 0; start < levels.length; start = end) {
    while (end < levels.length && levels[end] === levels[start]) end++;
    at = putVarint(runs, at, (end - start) * 2);
    runs[at++] = levels[start]!;
  }
  return runs.subarray(0, at);
}
