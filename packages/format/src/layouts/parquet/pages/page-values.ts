/** The values of a page in memory: ranges of its bytes. */
import { UnsupportedShardError } from '@shardtool/base';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { SIGNATURE_BYTES } from '../../../image/kinds.js';
import { damaged } from '../footer.js';
import { DELTA_LENGTH, type Page, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY } from './pages.js';
import { decodeRuns } from './runs.js';

/** The length before each value. */
export const LENGTH_BYTES = 4;

/** A range of a page. */
export interface Span {
  readonly page: number;
  readonly at: number;
  readonly bytes: number;
}

/** A page in memory. */
export interface LoadedPage {
  readonly page: Page;
  readonly number: number;
  readonly bytes: Uint8Array;
  /** The dictionary of its column; null if there is none. */
  readonly dictionary: Dictionary | null;
}

export interface Dictionary {
  readonly bytes: Uint8Array;
  readonly spans: readonly Span[];
}

/** Runs `work`, whose RangeErrors describe damage of the page. */
export function inPage<T>(page: Page, shard: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw damaged(shard, page.offset, `the page at byte ${page.offset} is invalid (${cause.message})`, cause);
  }
}

/**
 * Returns a function that returns the next value of a page: its range and its first bytes. It throws RangeError
 * after the last value. `begin`: offset of the values in the page, after its levels. `count`: number of values. Throws {@link
 * UnsupportedShardError}.
 */
export function valuesOf(
  loaded: LoadedPage,
  begin: number,
  count: number,
  column: string,
  shard: string,
): () => { readonly span: Span; readonly first: Uint8Array } {
  const { page, bytes, dictionary } = loaded;
  const spans = spansOf(loaded, begin, count);
  if (spans === null) {
    const message = `${shard}: its column "${column}" has an unsupported encoding (number ${page.encoding}); write it again with plain or dictionary encoding.`;
    throw new UnsupportedShardError({ shard, offset: page.offset }, message);
  }
  return () => {
    const next = spans.next();
    if (next.done) throw new RangeError('it ends before its values do');
    const { at, bytes: length, page: number } = next.value;
    const from = number === loaded.number ? bytes : dictionary!.bytes;
    return { span: next.value, first: from.subarray(at, at + Math.min(length, SIGNATURE_BYTES)) };
  };
}

/** 1 for each row that has a value. */
export function presentIn(levels: Uint8Array, maxLevel: number, rows: number): Uint8Array {
  const decoded = decodeRuns(levels, 32 - Math.clz32(maxLevel), rows);
  return Uint8Array.from(decoded, (level) => (level === maxLevel ? 1 : 0));
}

/** The offset of the values of a page, after its levels. */
export function valuesBegin(page: Page, bytes: Uint8Array, maxLevel: number): number {
  if (page.kind === 'data v2') return page.levelBytes;
  if (maxLevel === 0) return 0;
  if (bytes.length < LENGTH_BYTES) throw new RangeError('it is cut');
  const end = LENGTH_BYTES + lengthAt(bytes, 0);
  if (end > bytes.length) throw new RangeError('its levels are longer than the page');
  return end;
}

/** The values of a page that has `count` of them; null if its encoding is not supported. */
function spansOf({ page, number, bytes, dictionary }: LoadedPage, begin: number, count: number): Iterator<Span> | null {
  if (page.encoding === PLAIN) return plainValues(bytes, begin, number);
  if (page.encoding === PLAIN_DICTIONARY || page.encoding === RLE_DICTIONARY)
    return dictionaryValues(bytes, begin, count, dictionary);
  return page.encoding === DELTA_LENGTH ? deltaValues(bytes, begin, count, number) : null;
}

function* dictionaryValues(
  bytes: Uint8Array,
  begin: number,
  count: number,
  dictionary: Dictionary | null,
): Generator<Span> {
  if (count === 0) return;
  if (dictionary === null) throw new RangeError('there is no dictionary before it');
  if (begin >= bytes.length) throw new RangeError('it is cut');
  for (const entry of decodeRuns(bytes.subarray(begin + 1), bytes[begin]!, count)) {
    const span = dictionary.spans[entry];
    if (span === undefined) throw new RangeError('it refers to a value that its dictionary does not have');
    yield span;
  }
}

/** Lengths, then all values. Apache Parquet format, Encodings.md, "Delta-length byte array (DELTA_LENGTH_BYTE_ARRAY = 6)". */
function* deltaValues(bytes: Uint8Array, begin: number, count: number, page: number): Generator<Span> {
  if (count === 0) return;
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: begin };
  const lengths = new Int32Array(count);
  deltaBinaryUnpack(reader, count, lengths);
  let at = reader.offset;
  for (const length of lengths) {
    if (length < 0 || length > bytes.length - at) throw new RangeError('a value is longer than the page');
    yield { page, at, bytes: length };
    at += length;
  }
}

function* plainValues(bytes: Uint8Array, begin: number, page: number): Generator<Span> {
  for (let at = begin; at < bytes.length; ) {
    if (bytes.length - at < LENGTH_BYTES) throw new RangeError('it is cut');
    const length = lengthAt(bytes, at);
    at += LENGTH_BYTES;
    if (length > bytes.length - at) throw new RangeError('a value is longer than the page');
    yield { page, at, bytes: length };
    at += length;
  }
}

/** The values of a dictionary page. Throws {@link DamagedShardError}. */
export function dictionaryOf({ page, number, bytes }: Omit<LoadedPage, 'dictionary'>, shard: string): Dictionary {
  return { bytes, spans: inPage(page, shard, () => plainSpans(bytes, page.values, number)) };
}

function plainSpans(bytes: Uint8Array, count: number, page: number): Span[] {
  const spans = [...plainValues(bytes, 0, page)];
  if (spans.length !== count) throw new RangeError('its dictionary has a wrong number of values');
  return spans;
}

function lengthAt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}
