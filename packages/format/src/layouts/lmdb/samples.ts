import { isUtf8 } from 'node:buffer';
import { EntryNameError, UnsupportedShardError } from '@shardtool/base';
import { fieldOfKind, imageKindOf, SIGNATURE_BYTES } from '../../image/kinds.js';
import { decodeHead } from '../../msgpack/object.js';
import { getVarint } from '../../parquet/varint.js';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import type { FieldPosition, SamplePosition } from '../layout.js';
import { SampleWalk } from '../msgpack/walk.js';
import { BATCH, inBatches } from '../walk-file.js';
import { PAGE_HEADER_BYTES } from './page.js';
import { LmdbDatabase, type LmdbEntry } from './read.js';

/**
 * Yields the samples of an LMDB shard in the order of their keys. The first entry determines how all of them are
 * stored: as a msgpack map of the fields, or as an image alone. Samples before damage are yielded before the error is
 * thrown.
 */
export function samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  return inBatches(BATCH, async function* (found) {
    const database = await LmdbDatabase.open(source);
    const reader = new ValueReader(source, database);
    for await (const entries of database.scan()) {
      for (const entry of entries) found.push(await reader.position(entry));
      yield;
    }
  });
}

/** Finds the fields in values. Small values are in memory; of large ones only the few bytes between the payloads are read. */
class ValueReader {
  readonly #source: Source;
  readonly #database: LmdbDatabase;
  readonly #file: FileWindow;
  #areMaps: boolean | null = null;

  constructor(source: Source, database: LmdbDatabase) {
    this.#source = source;
    this.#database = database;
    this.#file = new FileWindow(source);
  }

  async position(entry: LmdbEntry): Promise<SamplePosition> {
    const key = keyText(entry, this.#source.location);
    const head = await this.#head(entry);
    const isFirst = this.#areMaps === null;
    this.#areMaps ??= isSampleMap(head);
    if (this.#areMaps) return this.#walk(key, entry);
    const { offset, bytes } = entry;
    const image = imageOf(head, offset, bytes);
    // All values of a foreign database have one form. A later value that looks different is an image of an unknown kind.
    const foreign = isFirst && image.name === UNKNOWN ? whyForeign(head, bytes) : null;
    if (foreign !== null) {
      const shard = this.#source.location;
      throw new UnsupportedShardError(
        { shard, key, offset },
        `${shard}: the value of the key ${JSON.stringify(key)} ${foreign}.`,
      );
    }
    return { key, offset, bytes, fields: [image] };
  }

  /** The first bytes of the value. If it is on overflow pages, this also checks their header. */
  async #head(entry: LmdbEntry): Promise<Buffer> {
    if (entry.inline !== null) return entry.inline;
    const wanted = PAGE_HEADER_BYTES + Math.min(entry.bytes, SIGNATURE_BYTES);
    const pages = await this.#file.at(entry.offset - PAGE_HEADER_BYTES, wanted);
    this.#database.checkRun(pages, entry);
    return pages.subarray(PAGE_HEADER_BYTES, wanted);
  }

  async #walk(key: string, { offset, bytes, inline }: LmdbEntry): Promise<SamplePosition> {
    const walk = new SampleWalk({ shard: this.#source.location, start: offset, end: offset + bytes, key });
    const samples: SamplePosition[] = [];
    while (!walk.done) {
      const window = inline?.subarray(walk.position - offset) ?? (await this.#file.at(walk.position, walk.needed));
      walk.advance(window, samples);
    }
    return samples[0]!;
  }
}

const UNKNOWN = 'bin';

/** The field of a value that is an image alone and begins with `head`; `bin` if its kind is unknown. */
export function imageOf(head: Buffer, offset: number, bytes: number): FieldPosition {
  const kind = imageKindOf(head);
  return { name: kind === undefined ? UNKNOWN : fieldOfKind(kind), offset, bytes };
}

/**
 * Identifies records of other software by their first bytes `head`, with a remedy, to continue "the value ..."; null if
 * they are unknown.
 */
function whyForeign(head: Buffer, bytes: number): string | null {
  if (isPickle(head, bytes))
    return 'is a pickled Python object, and reading it would mean running its content. Read the database in Python, and write the samples with shardtool.Writer';
  if (isDatum(head, bytes))
    return "is a Datum, a record of Caffe's, which is not read: read the database in Python, and write the images with shardtool.Writer";
  return null;
}

/** Opcodes of Python's pickle: PROTO, FRAME, EMPTY_TUPLE, MARK, EMPTY_LIST, GLOBAL, EMPTY_DICT and STOP. */
const PROTO = 0x80;
const FRAME = 0x95;
const FIRST_OPCODES = new Set([')', '(', ']', 'c', '}'].map((opcode) => opcode.charCodeAt(0)));
const STOP = 0x2e;
const FRAME_BYTES = 11;

/**
 * Whether a value is pickled: from protocol 4 on a frame of its length follows, before that the opcodes that begin
 * containers and objects.
 */
function isPickle(head: Buffer, bytes: number): boolean {
  if (head.length < FRAME_BYTES || head[0] !== PROTO) return false;
  const protocol = head[1]!;
  if (protocol === 4 || protocol === 5)
    return head[2] === FRAME && head.readBigUInt64LE(3) <= BigInt(bytes - FRAME_BYTES) && head.readBigUInt64LE(3) > 0n;
  const isWhole = head.length === bytes;
  return (protocol === 2 || protocol === 3) && FIRST_OPCODES.has(head[2]!) && (!isWhole || head.at(-1) === STOP);
}

/** Tags of a Datum (caffe.proto): channels, height and width, which are numbers, and data. Then follow label and a flag. */
const DATUM_NUMBERS = [0x08, 0x10, 0x18];
const DATUM_DATA = 0x22;
const DATUM_REST_BYTES = 16;

/** Whether a value is a Caffe Datum, with pixels or an encoded image. */
function isDatum(head: Buffer, bytes: number): boolean {
  const reader = { bytes: head, at: 0 };
  try {
    let numbers = 0;
    for (const tag of DATUM_NUMBERS) {
      if (head[reader.at] !== tag) continue;
      reader.at++;
      numbers++;
      getVarint(reader);
    }
    if (head[reader.at++] !== DATUM_DATA) return false;
    const length = getVarint(reader);
    const rest = bytes - reader.at - length;
    // A Datum without a size is an encoded image.
    const isSaid = numbers === DATUM_NUMBERS.length || imageKindOf(head.subarray(reader.at)) !== undefined;
    return isSaid && length > 0 && rest >= 0 && rest <= DATUM_REST_BYTES;
  } catch {
    // A truncated number is not a Datum.
    return false;
  }
}

/**
 * Whether a value that begins with `head` is a map: its first key is a string, or it is empty and spans the whole
 * value. No image begins like that: the 0x89 of PNG is a map too, but its P is not a string.
 */
export function isSampleMap(head: Buffer): boolean {
  if (head.length === 0) return false;
  const map = decodeHead(head, 0);
  if (map?.kind !== 'map') return false;
  if (map.children === 0) return head.length === map.bytes;
  return head.length > map.bytes && decodeHead(head, map.bytes)?.kind === 'str';
}

/** Decodes a key as text. It must not lead out of the folder into which samples are unpacked. */
function keyText(entry: LmdbEntry, shard: string): string {
  const { key, offset } = entry;
  const text = isUtf8(key) ? key.toString('utf8') : null;
  const reason = text === null ? 'is not UTF-8' : whyUnsafe(text);
  if (text !== null && reason === null) return text;
  const name = text === null ? `0x${key.toString('hex')}` : JSON.stringify(text);
  const message = `${shard}: the key ${name} ${reason}, so it cannot be the key of a sample; write the shard again with another key.`;
  throw new EntryNameError({ shard, offset }, message);
}
