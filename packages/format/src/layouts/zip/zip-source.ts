import { inflateRawSync } from 'node:zlib';
import { inLanes, LruCache } from '@shardtool/base';
import type { Source } from '../../source.js';
import { partAt } from '../bytes/part-at.js';
import { planRuns } from '../bytes/read-runs.js';
import { fill, LOCAL, readDirectory, type ZipEntry } from './directory.js';

/** Concurrent reads for one read of this source. */
const READS_AT_ONCE = 8;
/** Memory for recently used files. */
const KEPT_BYTES = 8 << 20;

/**
 * The inflated files of a zip in sequence, without headers. It does not report damage: a reader of several files still
 * gets the others, and their crc32 (see {@link ZipEntry}) shows which are intact. Owns `source`.
 */
export class ZipSource implements Source {
  readonly location: string;
  readonly size: number;
  readonly entries: readonly ZipEntry[];
  /** The offset of each entry in this source, and the end of the last one. */
  readonly starts: Float64Array;
  readonly #source: Source;
  readonly #kept = new LruCache<number, Uint8Array>(KEPT_BYTES, undefined, ({ length }) => length);

  constructor(source: Source, entries: readonly ZipEntry[]) {
    this.location = source.location;
    this.entries = entries;
    this.starts = new Float64Array(entries.length + 1);
    for (const [i, { bytes }] of entries.entries()) this.starts[i + 1] = this.starts[i]! + bytes;
    this.size = this.starts.at(-1)!;
    this.#source = source;
  }

  /** `choose` selects files and their order. */
  static async open(source: Source, choose: (entries: readonly ZipEntry[]) => readonly ZipEntry[]): Promise<ZipSource> {
    return new ZipSource(source, choose(await readDirectory(source)));
  }

  async readAt(offset: number, target: Uint8Array): Promise<number> {
    const { starts } = this;
    const end = Math.min(offset + target.length, this.size);
    if (offset >= end) return 0;
    const put = (number: number, bytes: Uint8Array): void => {
      const from = Math.max(offset, starts[number]!);
      const to = Math.min(end, starts[number + 1]!);
      if (from < to) target.set(bytes.subarray(from - starts[number]!, to - starts[number]!), from - offset);
    };
    const wanted: (Pick<ZipEntry, 'offset'> & { readonly bytes: number; readonly number: number })[] = [];
    for (let number = partAt(starts, offset); number < this.entries.length && starts[number]! < end; number++) {
      const { offset: at, extent, bytes } = this.entries[number]!;
      const kept = this.#kept.get(number);
      if (kept !== undefined) put(number, kept);
      else if (bytes > 0) wanted.push({ offset: at, bytes: extent, number });
    }
    await inLanes(planRuns(wanted), READS_AT_ONCE, async (run) => {
      const stored = Buffer.from(new ArrayBuffer(run.bytes));
      await fill(this.#source, run.offset, stored);
      for (const { offset: at, bytes, number } of run.spans) {
        const payload = payloadOf(this.entries[number]!, stored.subarray(at - run.offset, at - run.offset + bytes));
        put(number, payload);
        // A caller that reads a part of a file will probably read the rest.
        if (starts[number]! < offset || starts[number + 1]! > end) this.#keep(number, payload);
      }
    });
    return end - offset;
  }

  close(): Promise<void> {
    this.#kept.clear();
    return this.#source.close();
  }

  #keep(number: number, payload: Uint8Array): void {
    if (this.#kept.has(number) || payload.length > KEPT_BYTES) return;
    // A copy, because the buffer that contains the payload is larger.
    this.#kept.set(number, new Uint8Array(payload));
  }
}

/** The content of a file, from its local header on; zeros if it is damaged. */
function payloadOf({ isDeflated, storedBytes, bytes }: ZipEntry, stored: Buffer): Uint8Array {
  const lost = () => new Uint8Array(bytes);
  if (stored.length < LOCAL.bytes || stored.readUInt32LE(0) !== LOCAL.signature) return lost();
  const at = LOCAL.bytes + stored.readUInt16LE(26) + stored.readUInt16LE(28);
  if (at + storedBytes > stored.length) return lost();
  const data = stored.subarray(at, at + storedBytes);
  if (!isDeflated) return data;
  try {
    const inflated = inflateRawSync(data, { maxOutputLength: Math.max(1, bytes) });
    return inflated.length === bytes ? inflated : lost();
  } catch {
    return lost();
  }
}
