import { isUtf8 } from 'node:buffer';
import {
  DamagedShardError,
  DuplicateKeyError,
  EntryNameError,
  TruncatedShardError,
  UnsupportedEntryError,
} from '@shardtool/base';
import { decodeHead, headBytes, type ObjectHead } from '../../msgpack/object.js';
import { KEY_ENTRY } from '../../sample/sample-codec.js';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { FieldPosition, SamplePosition } from '../layout.js';

/** Larger lengths are damage: names and keys are short, and samples have a handful of fields. */
const MAX_NAME_BYTES = 1024;
const MAX_KEY_BYTES = 0xffff;
const MAX_FIELDS = 1000;

/** The range of a file to walk. */
export interface WalkedRange {
  /** The file's name, for messages. */
  readonly shard: string;
  readonly start: number;
  readonly end: number;
  /** The range is one sample with this key, as in LMDB. If absent, it is a sequence of samples, each with its `__key__`. */
  readonly key?: string;
}

interface OpenSample {
  readonly offset: number;
  key: string | null;
  entriesLeft: number;
  /** The name of the entry whose value comes next. */
  name: string | null;
  readonly fields: FieldPosition[];
}

/**
 * The walk over samples in msgpack, without I/O: it reports what it needs next and takes it from windows of the file,
 * whatever their sizes. It neither reads nor copies payloads. A damaged length leads out of the range or to something
 * that is not a sample, and both end the walk with an error; no memory is allocated for it.
 */
export class SampleWalk {
  /** Offset at which the next window has to begin. */
  position: number;
  /** The minimum length of that window, in bytes. */
  needed = 1;
  /** Whether the whole range has been walked. */
  done: boolean;

  readonly #range: WalkedRange;
  #open: OpenSample | null = null;
  /** Inside a value that is an array or a map: its offset, and how many of its objects remain. */
  #nestedStart = 0;
  #nestedLeft = 0;
  /** Offset of each key. */
  readonly #seen = new Map<string, number>();

  constructor(range: WalkedRange) {
    this.#range = range;
    this.position = range.start;
    this.done = range.key === undefined && range.start === range.end;
    if (range.start === range.end && !this.done) throw this.#damaged('is empty');
  }

  /** Walks as far as `window` reaches, which begins at `position`, and appends the samples that end in it to `samples`. */
  advance(window: Buffer, samples: SamplePosition[]): void {
    const windowStart = this.position;
    while (!this.done && this.#step(window, this.position - windowStart, samples));
  }

  /** Takes one object. Returns false if the window does not contain enough of it. */
  #step(window: Buffer, at: number, samples: SamplePosition[]): boolean {
    if (!this.#has(window, at, 1) || !this.#has(window, at, headBytes(window[at]!))) return false;
    const head = decodeHead(window, at);
    if (head === null) throw this.#unsupported(window[at]!);
    const text = this.#isText(head) ? head.payload : 0;
    if (!this.#has(window, at, head.bytes + text)) return false;
    this.#take(head, window.subarray(at + head.bytes, at + head.bytes + text), samples);
    this.needed = 1;
    return true;
  }

  /** Whether the next object is a name or a key, which has to be read. */
  #isText(head: ObjectHead): boolean {
    if (this.#open === null || this.#nestedLeft > 0) return false;
    const { name } = this.#open;
    if (name !== null && !this.#isKey(name)) return false;
    const limit = name === null ? MAX_NAME_BYTES : MAX_KEY_BYTES;
    if (head.kind !== 'str' && !(name !== null && head.kind === 'bin')) {
      throw this.#damaged(`has ${name === null ? 'a name' : 'a key'} that is not a string (${head.kind})`);
    }
    if (head.payload > limit) throw this.#damaged(`has a name of ${head.payload} bytes`);
    return true;
  }

  #take(head: ObjectHead, text: Buffer, samples: SamplePosition[]): void {
    const open = this.#open;
    const start = this.position;
    this.#pass(head.bytes + head.payload);
    if (open === null) this.#begin(head, start);
    else if (this.#nestedLeft > 0) this.#passNested(head.children - 1);
    else if (open.name === null) open.name = this.#decodeText(text, start);
    else if (this.#isKey(open.name)) this.#setKey(open, text, start);
    else if (head.children > 0) {
      this.#nestedStart = start;
      this.#nestedLeft = head.children;
    } else if (head.kind === 'str' || head.kind === 'bin') this.#addField(start + head.bytes, false);
    else this.#addField(start, true);
    if (this.#open?.entriesLeft === 0) this.#close(this.#open, samples);
  }

  #begin(head: ObjectHead, offset: number): void {
    if (head.kind !== 'map') throw this.#damaged(`is not a map (${head.kind})`, offset);
    const entriesLeft = head.children / 2;
    if (entriesLeft > MAX_FIELDS) throw this.#damaged(`is a map of ${entriesLeft} entries`, offset);
    this.#open = { offset, key: this.#range.key ?? null, entriesLeft, name: null, fields: [] };
  }

  #passNested(more: number): void {
    this.#nestedLeft += more;
    if (this.#nestedLeft === 0) this.#addField(this.#nestedStart, true);
  }

  #setKey(open: OpenSample, text: Buffer, offset: number): void {
    if (open.key !== null) throw this.#duplicateField(KEY_ENTRY, offset, open.offset);
    const key = this.#decodeText(text, offset);
    const first = this.#seen.get(key);
    if (first !== undefined) throw duplicateKey(this.#range.shard, key, open.offset, first);
    this.#seen.set(key, open.offset);
    open.key = key;
    this.#endEntry(open);
  }

  /** Adds the value of the open entry, from `offset` to the current position. */
  #addField(offset: number, msgpack: boolean): void {
    const open = this.#open!;
    const name = open.name!;
    const other = open.fields.find((field) => field.name === name);
    if (other !== undefined) throw this.#duplicateField(name, offset, other.offset);
    const bytes = this.position - offset;
    open.fields.push(msgpack ? { name, offset, bytes, msgpack } : { name, offset, bytes });
    this.#endEntry(open);
  }

  #endEntry(open: OpenSample): void {
    open.name = null;
    open.entriesLeft--;
  }

  #close(open: OpenSample, samples: SamplePosition[]): void {
    const { key, offset, fields } = open;
    if (key === null) throw this.#damaged(`has no "${KEY_ENTRY}"`, offset);
    samples.push({ key, offset, bytes: this.position - offset, fields });
    this.#open = null;
    this.done = this.position === this.#range.end;
    if (!this.done && this.#range.key !== undefined) throw this.#damaged('continues after its map');
  }

  #isKey(name: string): boolean {
    return name === KEY_ENTRY && this.#range.key === undefined;
  }

  /** Whether the window has `length` bytes from `at` on. Throws if the range ends before them. */
  #has(window: Buffer, at: number, length: number): boolean {
    if (this.position + length > this.#range.end) throw this.#cut();
    this.needed = length;
    return at + length <= window.length;
  }

  #pass(bytes: number): void {
    if (this.position + bytes > this.#range.end) throw this.#cut();
    this.position += bytes;
  }

  /** Decodes a key or a field's name. Neither may lead out of the folder into which it is unpacked. */
  #decodeText(text: Buffer, offset: number): string {
    const { shard } = this.#range;
    const isName = this.#open!.name === null;
    const what = isName ? 'name of a field' : 'key';
    if (!isUtf8(text)) {
      const message = `${shard}: the ${what} at byte ${offset} is not UTF-8; write the shard again with UTF-8 names.`;
      throw new EntryNameError({ shard, offset }, message);
    }
    const name = text.toString('utf8');
    const reason = whyUnsafe(name) ?? (isName && name.includes('/') ? 'holds a slash' : null);
    if (reason !== null) {
      const message = `${shard}: the ${what} at byte ${offset} ${reason} (${JSON.stringify(name)}); write the shard again with another name.`;
      throw new EntryNameError({ shard, offset }, message);
    }
    return name;
  }

  #where(offset: number) {
    return { shard: this.#range.shard, key: this.#open?.key ?? this.#range.key, offset };
  }

  /** `trouble` continues "the sample at byte N". */
  #damaged(trouble: string, offset = this.#open?.offset ?? this.position): DamagedShardError {
    const message = `${this.#range.shard}: the sample at byte ${offset} ${trouble}. The shard is damaged, or this is not a shard: fetch or write it again.`;
    return new DamagedShardError(this.#where(offset), message);
  }

  #cut(): DamagedShardError {
    if (this.#range.key !== undefined)
      return this.#damaged(`leads beyond its ${this.#range.end - this.#range.start} bytes`);
    const offset = this.#open?.offset ?? this.position;
    const message =
      `${this.#range.shard}: the sample at byte ${offset} is longer than the rest of the shard, which ends at byte ` +
      `${this.#range.end}. It is truncated: fetch or write it again.`;
    return new TruncatedShardError(this.#where(offset), message);
  }

  #unsupported(first: number): Error {
    if (first === 0xc1) return this.#damaged('contains the byte 0xc1, which msgpack never uses');
    const message =
      `${this.#range.shard}: there is an extension type at byte ${this.position}, but shards may contain plain values only; ` +
      `write the shard again without it.`;
    return new UnsupportedEntryError(this.#where(this.position), message);
  }

  #duplicateField(name: string, offset: number, otherOffset: number): DuplicateKeyError {
    const { key } = this.#where(offset);
    const message =
      `${this.#range.shard}: sample "${key ?? ''}" has the field "${name}" twice, at bytes ${otherOffset} and ${offset}; ` +
      `write the shard again with one of them.`;
    return new DuplicateKeyError({ shard: this.#range.shard, key, offset, otherOffset }, message);
  }
}

function duplicateKey(shard: string, key: string, offset: number, otherOffset: number): DuplicateKeyError {
  const message =
    `${shard}: the key "${key}" at byte ${offset} already occurred at byte ${otherOffset}; ` +
    `each key may occur once per shard: write it again without the repetition.`;
  return new DuplicateKeyError({ shard, key, offset, otherOffset }, message);
}
