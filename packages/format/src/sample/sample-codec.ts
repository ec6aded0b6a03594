import { isUtf8 } from 'node:buffer';
import { crc32, OptionError, totalOf, WriteCheckError } from '@shardtool/base';
import { Packr } from 'msgpackr/pack';
import { binHeadBytes, encodeBinHead, encodeMapHead, encodeStrHead, mapHeadBytes } from '../msgpack/object.js';
import { type FieldType, fieldType } from './field-type.js';
import type { FieldSize } from './sample-check.js';

/** Payloads in the room, with their checksums at the source. */
export interface SummedBytes {
  /** Offset from the start of the room. */
  readonly offset: number;
  readonly bytes: number;
  readonly crc32: number;
}

/** The map entry with the sample's key, for layouts that do not store keys themselves. */
export const KEY_ENTRY = '__key__';

/** Where the encoder put one field, as an offset from the start of the sample's value. */
export interface PlacedField {
  offset: number;
  bytes: number;
  /** Whether the bytes are a msgpack value whose text is the payload: see `fieldPayload`. */
  msgpack: boolean;
}

/** Encodes a sample as one value, around payloads that the caller reads into the places given. */
export interface ValueEncoder {
  /** Starts a sample and returns an upper bound for the size of its value, in bytes. */
  plan(key: string, fields: readonly FieldSize[]): number;
  /** Writes the parts that are known before the payloads to `target` and returns a view for each payload, in the order of the fields. */
  layOut(target: Buffer): readonly Uint8Array[];
  /**
   * Completes the value once the payloads are in place, and returns its length. Throws {@link WriteCheckError} if a
   * payload that is converted to another value does not match its checksum in `payloadCrc32`.
   */
  settle(payloadCrc32?: readonly number[]): number;
  /** The positions of the fields in the completed value, in the order in which they were given. */
  readonly placed: readonly PlacedField[];
}

const packr = new Packr({ useRecords: false });
/** The name of the key's entry as msgpack: a `str` of fewer than 32 bytes. */
const keyEntryName = Uint8Array.from([0xa0 | KEY_ENTRY.length, ...Buffer.from(KEY_ENTRY)]);

/**
 * Encodes a sample as a msgpack map: its key if `withKey` is set, then its fields. A field whose name implies text or
 * an integer is written as `str` or `int` if that gives the same bytes back; anything else is `bin`. Typed fields come
 * last: an integer is shorter than its digits, and the images before it then do not move.
 */
export class MapEncoder implements ValueEncoder {
  readonly placed: PlacedField[] = [];
  readonly #withKey: boolean;
  #key = '';
  #fields: readonly FieldSize[] = [];
  #shape: MapShape = mapShape([]);
  #packedKey: Uint8Array = new Uint8Array(0);
  #target: Buffer = Buffer.alloc(0);
  /** Offset of the entries of typed fields. */
  #typedAt = 0;

  constructor(withKey: boolean) {
    this.#withKey = withKey;
  }

  plan(key: string, fields: readonly FieldSize[]): number {
    this.#key = key;
    this.#fields = fields;
    if (!hasNames(this.#shape, fields)) this.#shape = mapShape(fields);
    let bytes = mapHeadBytes(fields.length + 1) + this.#shape.packedBytes;
    if (this.#withKey) {
      this.#packedKey = packr.pack(key);
      bytes += keyEntryName.length + this.#packedKey.length;
    }
    for (const { bytes: payload } of fields) bytes += binHeadBytes(payload) + payload;
    return bytes;
  }

  layOut(target: Buffer): readonly Uint8Array[] {
    const { order, packed, untyped } = this.#shape;
    this.#target = target;
    let at = encodeMapHead(target, 0, order.length + (this.#withKey ? 1 : 0));
    if (this.#withKey) at = put(target, put(target, at, keyEntryName), this.#packedKey);
    this.placed.length = order.length;
    this.#typedAt = at;
    for (const [i, field] of order.entries()) {
      const { bytes } = this.#fields[field]!;
      const offset = encodeBinHead(target, put(target, at, packed[field]!), bytes);
      this.placed[field] = { offset, bytes, msgpack: false };
      at = offset + bytes;
      if (i < untyped) this.#typedAt = at;
    }
    return this.placed.map(({ offset, bytes }) => target.subarray(offset, offset + bytes));
  }

  settle(payloadCrc32: readonly number[] = []): number {
    const { order, packed, untyped } = this.#shape;
    let at = this.#typedAt;
    for (let i = untyped; i < order.length; i++) {
      const field = order[i]!;
      at = this.#settleField(field, put(this.#target, at, packed[field]!), payloadCrc32[field]);
    }
    return at;
  }

  /** Writes the value of a typed field at `at`, which is never after its payload, and returns the end of the value. */
  #settleField(field: number, at: number, expected: number | undefined): number {
    const target = this.#target;
    const placed = this.placed[field]!;
    const type = this.#shape.types[field]!;
    const payload = target.subarray(placed.offset, placed.offset + placed.bytes);
    const integer = type === 'integer' ? canonicalInteger(payload) : null;
    if (integer !== null) {
      const actual = crc32(payload);
      if (actual !== (expected ?? actual)) throw changedInPlace(this.#key, this.#shape.names[field]!);
      const end = put(target, at, packr.pack(integer));
      placed.offset = at;
      placed.bytes = end - at;
      placed.msgpack = true;
      return end;
    }
    const encodeHead = type !== 'integer' && isUtf8(payload) ? encodeStrHead : encodeBinHead;
    const offset = encodeHead(target, at, placed.bytes);
    if (offset !== placed.offset) target.copyWithin(offset, placed.offset, placed.offset + placed.bytes);
    placed.offset = offset;
    return offset + placed.bytes;
  }
}

function changedInPlace(key: string, field: string): WriteCheckError {
  const message = `Field "${field}" of sample "${key}" changed after it was read and before it was written; pack again, and check the memory of this machine if this happens again.`;
  return new WriteCheckError({ key }, message);
}

/** Facts that depend only on the names of a sample's fields; the next sample usually has the same names. */
interface MapShape {
  readonly names: readonly string[];
  readonly types: readonly FieldType[];
  /** The names as encoded in the map. */
  readonly packed: readonly Uint8Array[];
  readonly packedBytes: number;
  /**
   * The order of fields in the map: first those that do not move (the first `untyped`), then texts, which move by a few
   * bytes at most, then integers.
   */
  readonly order: readonly number[];
  readonly untyped: number;
}

function mapShape(fields: readonly FieldSize[]): MapShape {
  const names = fields.map(({ name }) => name);
  const types = names.map(fieldType);
  const packed = names.map((name) => Uint8Array.from(packr.pack(name)));
  const rank = (field: number) => (types[field] === 'bytes' ? 0 : types[field] === 'integer' ? 2 : 1);
  return {
    names,
    types,
    packed,
    packedBytes: totalOf(packed, ({ length }) => length),
    order: Array.from(names.keys()).sort((a, b) => rank(a) - rank(b)),
    untyped: types.filter((type) => type === 'bytes').length,
  };
}

function hasNames(shape: MapShape, fields: readonly FieldSize[]): boolean {
  return fields.length === shape.names.length && fields.every(({ name }, i) => name === shape.names[i]);
}

/**
 * Encodes a sample as its image alone, as torchvision's LSUN stores it in LMDB. Throws {@link OptionError} if the
 * sample has other fields.
 */
export class ImageEncoder implements ValueEncoder {
  readonly placed: [PlacedField] = [{ offset: 0, bytes: 0, msgpack: false }];

  plan(key: string, fields: readonly FieldSize[]): number {
    if (fields.length !== 1) {
      const message = `Sample "${key}" has ${fields.length} fields, but this layout stores only the image; omit the others.`;
      throw new OptionError({ key }, message);
    }
    this.placed[0].bytes = fields[0]!.bytes;
    return this.placed[0].bytes;
  }

  layOut(target: Buffer): readonly Uint8Array[] {
    return [target.subarray(0, this.placed[0].bytes)];
  }

  settle(): number {
    return this.placed[0].bytes;
  }
}

/**
 * The payloads that are stored unchanged in a completed value, with their checksums, in the order of the value. The
 * value begins at `start` of the room.
 */
export function summedPayloads(
  placed: readonly PlacedField[],
  payloadCrc32: readonly number[],
  start = 0,
): readonly SummedBytes[] {
  const summed: SummedBytes[] = [];
  for (let i = 0; i < payloadCrc32.length; i++) {
    const { offset, bytes, msgpack } = placed[i]!;
    if (!msgpack) summed.push({ offset: start + offset, bytes, crc32: payloadCrc32[i]! });
  }
  return summed.length > 1 ? summed.sort((a, b) => a.offset - b.offset) : summed;
}

/** The integer that these digits denote, if writing it gives the same digits and msgpack can hold it; otherwise null. */
function canonicalInteger(digits: Buffer): number | bigint | null {
  if (digits.length === 0 || digits.length > 20) return null;
  const text = digits.toString('latin1');
  if (!/^(0|-?[1-9][0-9]*)$/.test(text)) return null;
  if (text.length < 10) return Number(text);
  const integer = BigInt(text);
  if (integer >= 2n ** 64n || integer < -(2n ** 63n)) return null;
  // msgpackr writes numbers above 32 bits as floats.
  return integer > 0xffffffffn || integer < -0x80000000n ? integer : Number(integer);
}

function put(target: Uint8Array, at: number, bytes: Uint8Array): number {
  target.set(bytes, at);
  return at + bytes.length;
}
