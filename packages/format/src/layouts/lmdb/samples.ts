import { UnsupportedShardError } from '@shardtool/base';
import { fieldOfKind, imageKindOf, SIGNATURE_BYTES } from '../../image/kinds.js';
import { decodeHead } from '../../msgpack/object.js';
import { packedName } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import type { FieldPosition, OnSkipped, SamplePosition } from '../layout.js';
import { SampleWalk } from '../msgpack/walk.js';
import { BATCH, inBatches } from '../walk-file.js';
import { datumHead, datumImage } from './datum.js';
import { DatumArrays } from './datum-arrays.js';
import { headOf, keyText } from './entry-head.js';
import { ocr, ocrText, TensorpackReader } from './foreign.js';
import { LmdbDatabase, type LmdbEntry } from './read.js';

/**
 * Yields the samples of an LMDB shard in the order of their keys. The first entry determines how all of them are
 * stored: as a msgpack map of the fields, as an image alone, or as other software stores them. Samples before damage are
 * yielded before the error is thrown.
 */
export function samples(source: Source, onSkipped?: OnSkipped): AsyncGenerator<readonly SamplePosition[]> {
  if (source instanceof DatumArrays) return source.samples();
  return inBatches(BATCH, async function* (found) {
    const database = await LmdbDatabase.open(source);
    const reader = new ValueReader(source, database, onSkipped);
    for await (const entries of database.scan()) {
      for (const entry of entries) {
        const position = await reader.position(entry);
        if (position !== null) found.push(position);
      }
      yield;
    }
  });
}

/** Finds the fields in values. Small values are in memory; of large ones only the few bytes between the payloads are read. */
class ValueReader {
  readonly #source: Source;
  readonly #database: LmdbDatabase;
  readonly #file: FileWindow;
  readonly #onSkipped: OnSkipped | undefined;
  #form: ValueForm | null = null;

  constructor(source: Source, database: LmdbDatabase, onSkipped?: OnSkipped) {
    this.#source = source;
    this.#database = database;
    this.#onSkipped = onSkipped;
    this.#file = new FileWindow(source);
  }

  /** The sample of an entry; null for an entry that only describes the database. */
  async position(entry: LmdbEntry): Promise<SamplePosition | null> {
    const shard = this.#source.location;
    const key = keyText(entry, shard);
    const { offset, bytes } = entry;
    const head = await headOf(entry, this.#file, this.#database);
    const isFirst = this.#form === null;
    // All values of a database have the same form. If a later value looks different, it is an image of an unknown kind.
    this.#form ??= await this.#formOf(key, head, bytes, offset);
    switch (this.#form) {
      case 'map':
        return this.#walk(key, entry);
      case 'image':
        return { key, offset, bytes, fields: [imageOf(head, offset, bytes)] };
      case 'ocr':
        return this.#recognised(key, head, entry);
      case 'datum': {
        const { cls, ...image } = await datumImage(
          this.#file,
          shard,
          { key, offset, bytes },
          Buffer.from(head),
          isFirst,
        );
        // convert_imageset uses the paths of the files as keys. A pack uses the paths without their extension.
        const name = packedName(key)?.key ?? key;
        return { key: name, offset, bytes, fields: [await this.#imageAt(image)], cls };
      }
      default:
        return TensorpackReader.isNote(key) ? null : this.#form.position(key, offset, bytes);
    }
  }

  async #formOf(key: string, head: Buffer, bytes: number, offset: number): Promise<ValueForm> {
    const shard = this.#source.location;
    if (isSampleMap(head)) return 'map';
    const isNumbered = ocr.isImage(key) && (await this.#database.find(ocr.count)) !== undefined;
    if (isNumbered) return 'ocr';
    if (imageKindOf(head) !== undefined) return 'image';
    if (datumHead(head, bytes) !== null) return 'datum';
    if (TensorpackReader.isBegin(head)) return new TensorpackReader(this.#file, shard);
    if (!isPickle(head, bytes)) return 'image';
    throw new UnsupportedShardError(
      { shard, key, offset },
      `${shard}: the value of the key ${JSON.stringify(key)} is a pickled Python object, and reading it would mean running its content. Read the database in Python, and write the samples with shardtool.Writer.`,
    );
  }

  /** An image of a dataset for text recognition, with its text in the label column `text`. */
  async #recognised(key: string, head: Buffer, { offset, bytes }: LmdbEntry): Promise<SamplePosition | null> {
    if (!ocr.isImage(key)) {
      if (this.#onSkipped !== undefined && !(await this.#isOfImage(key))) this.#onSkipped(key, offset);
      return null;
    }
    const field = imageOf(head, offset, bytes);
    const text = await ocrText(this.#source.location, this.#database, key);
    return { key, offset, bytes, fields: [field], labels: new Map([['text', text]]) };
  }

  /** Whether an entry of a dataset for text recognition is the label of one of its images, or the entry with the number of images. */
  async #isOfImage(key: string): Promise<boolean> {
    if (ocr.isLabel(key)) return (await this.#database.find(ocr.imageOf(key))) !== undefined;
    return key === ocr.count;
  }

  async #imageAt({ offset, bytes }: { readonly offset: number; readonly bytes: number }): Promise<FieldPosition> {
    const peek = Math.min(bytes, SIGNATURE_BYTES);
    return imageOf((await this.#file.at(offset, peek)).subarray(0, peek), offset, bytes);
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

/** How the values of a database are stored. */
type ValueForm = 'map' | 'image' | 'ocr' | 'datum' | TensorpackReader;

const UNKNOWN = 'bin';

/** The field of a value that is an image alone and begins with `head`; `bin` if its kind is unknown. */
export function imageOf(head: Buffer, offset: number, bytes: number): FieldPosition {
  const kind = imageKindOf(head);
  return { name: kind === undefined ? UNKNOWN : fieldOfKind(kind), offset, bytes };
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
