/** Datums of Caffe (caffe.proto), the values of databases that convert_imageset and its users write. */
import { imageKindOf } from '../../image/kinds.js';
import { type Cursor, getVarint } from '../../parquet/varint.js';
import type { FileWindow } from '../bytes/file-window.js';
import { damaged, unsupported } from '../columns/value-columns.js';

/** Tags of a Datum: channels, height and width, the data, label, float_data (one by one, or packed), encoded. */
const SIZES = [0x08, 0x10, 0x18];
const DATA = 0x22;
const LABEL = 0x28;
const FLOAT = 0x35;
const PACKED_FLOATS = 0x32;
const ENCODED = 0x38;
/** Maximum number of bytes after the data. */
const REST_BYTES = 16;
const FLOAT_BYTES = 4;
/** Bytes of a negative number: a varint of 64 bits. */
const NEGATIVE_BYTES = 10;

/** The part of a Datum that is known from its first bytes. */
export interface DatumHead {
  /** Kind of the content. `bytes`: an encoded image or raw pixels, which the rest of the Datum decides. */
  readonly kind: 'bytes' | 'floats' | 'packed floats';
  /** Offset of the content in the value, and its length in bytes, tags of single floats included. */
  readonly at: number;
  readonly length: number;
  /** Channels, height and width; null if the Datum does not have all of them. */
  readonly shape: readonly [channels: number, height: number, width: number] | null;
  /** True if the content begins with the signature of an image. */
  readonly isImage: boolean;
  /** The label, if it is before the content; -1 if it is not. */
  readonly cls: number;
}

/** A Datum: a {@link DatumHead} with what follows its content. */
export interface Datum extends DatumHead {
  /** True if the content is an encoded image, and false if it is values of pixels. */
  readonly isEncoded: boolean;
}

/** Reads the beginning of a Datum from `head`, the first of its `bytes` bytes. Null if the value is not a Datum. */
export function datumHead(head: Buffer, bytes: number): DatumHead | null {
  const reader: Cursor = { bytes: head, at: 0 };
  try {
    const sizes: number[] = [];
    for (const tag of SIZES) {
      if (head[reader.at] !== tag) continue;
      reader.at++;
      sizes.push(getVarint(reader));
    }
    const shape = sizes.length === SIZES.length ? (sizes as [number, number, number]) : null;
    return bytesHead(reader, head, bytes, shape) ?? (shape && floatsHead(reader, head, bytes, shape));
  } catch {
    // A truncated number is not a Datum.
    return null;
  }
}

function bytesHead(reader: Cursor, head: Buffer, bytes: number, shape: DatumHead['shape']): DatumHead | null {
  const start = reader.at;
  if (head[reader.at++] === DATA) {
    const length = getVarint(reader);
    const { at } = reader;
    const rest = bytes - at - length;
    const isImage = imageKindOf(head.subarray(at)) !== undefined;
    // A Datum without a size is an encoded image.
    const isKnown = shape !== null || isImage;
    if (isKnown && length > 0 && rest >= 0 && rest <= REST_BYTES)
      return { kind: 'bytes', at, length, shape, isImage, cls: -1 };
    // Some writers store empty data before floats.
    if (length === 0) return null;
  }
  reader.at = start;
  return null;
}

function floatsHead(
  reader: Cursor,
  head: Buffer,
  bytes: number,
  shape: NonNullable<DatumHead['shape']>,
): DatumHead | null {
  let cls = -1;
  if (head[reader.at] === LABEL) {
    reader.at++;
    cls = int32At(reader);
  }
  const at = reader.at;
  const values = shape[0] * shape[1] * shape[2];
  const isPacked = head[at] === PACKED_FLOATS;
  if (!isPacked && head[at] !== FLOAT) return null;
  reader.at++;
  const length = isPacked ? getVarint(reader) : values * (1 + FLOAT_BYTES);
  const start = isPacked ? reader.at : at;
  const rest = bytes - start - length;
  const isWhole = values > 0 && length === values * (isPacked ? FLOAT_BYTES : 1 + FLOAT_BYTES);
  if (!isWhole || rest < 0 || rest > REST_BYTES) return null;
  return { kind: isPacked ? 'packed floats' : 'floats', at: start, length, shape, isImage: false, cls };
}

/**
 * A number of 32 bits; -1 for a negative number, which takes ten bytes, and means no class. Throws RangeError if the
 * bytes end within the number.
 */
function int32At(reader: Cursor): number {
  const start = reader.at;
  let end = start;
  while ((reader.bytes[end] ?? 0) > 127) end++;
  if (end - start < NEGATIVE_BYTES - 1) {
    const value = getVarint(reader);
    return value <= 0x7fffffff ? value : -1;
  }
  skipBytes(reader, NEGATIVE_BYTES);
  return -1;
}

/** Skips the value of a field that has no meaning here. Throws RangeError if the bytes end within it. */
function skipValue(reader: Cursor, tag: number): void {
  switch (tag & 7) {
    case 0:
      int32At(reader);
      break;
    case 1:
      skipBytes(reader, 8);
      break;
    case 2:
      skipBytes(reader, getVarint(reader));
      break;
    case 5:
      skipBytes(reader, FLOAT_BYTES);
      break;
    default:
      throw new RangeError('a field has an unknown type');
  }
}

function skipBytes(reader: Cursor, bytes: number): void {
  if (reader.at + bytes > reader.bytes.length) throw new RangeError('a field is cut off');
  reader.at += bytes;
}

interface DatumValue {
  readonly key: string;
  readonly offset: number;
  readonly bytes: number;
}

/** The Datum in a value that begins with `head`. Throws DamagedShardError if it is not a Datum. */
export async function datumAt(
  file: FileWindow,
  shard: string,
  { key, offset, bytes }: DatumValue,
  head: Buffer,
): Promise<Datum> {
  const notDatum = () => damaged(shard, offset, `the value of the key ${JSON.stringify(key)} is not a Datum`);
  const datum = datumHead(head, bytes);
  if (datum === null) throw notDatum();
  const end = datum.at + datum.length;
  const rest = bytes - end;
  const tail = rest === 0 ? Buffer.alloc(0) : (await file.at(offset + end, rest)).subarray(0, rest);
  const whole = withTail(datum, tail);
  if (whole === null) throw notDatum();
  return whole;
}

/** Returns null if the bytes after the content are not fields of a Datum. */
function withTail(datum: DatumHead, tail: Buffer): Datum | null {
  let { cls } = datum;
  let isMarked = false;
  const reader: Cursor = { bytes: tail, at: 0 };
  try {
    while (reader.at < tail.length) {
      const tag = getVarint(reader);
      if (tag === LABEL) cls = int32At(reader);
      else if (tag === ENCODED) isMarked = getVarint(reader) === 1;
      else skipValue(reader, tag);
    }
  } catch {
    return null;
  }
  const { kind, shape, length, isImage } = datum;
  // Raw pixels can begin like an image by chance, but then they have the length of their shape.
  const isRaw = kind !== 'bytes' || (shape !== null && shape[0] * shape[1] * shape[2] === length);
  return { ...datum, cls, isEncoded: isMarked || (isImage && !isRaw) };
}

/**
 * The range of the image in an encoded Datum, and its class. Throws UnsupportedShardError for raw pixels; `isFirst` tells
 * whether `convert` reads the database.
 */
export async function datumImage(
  file: FileWindow,
  shard: string,
  value: DatumValue,
  head: Buffer,
  isFirst: boolean,
): Promise<{ readonly offset: number; readonly bytes: number; readonly cls: number }> {
  const { at, length, cls, isEncoded } = await datumAt(file, shard, value, head);
  if (isEncoded) return { offset: value.offset + at, bytes: length, cls };
  const name = JSON.stringify(value.key);
  throw unsupported(
    shard,
    isFirst
      ? `the value of the key ${name} is a Datum of Caffe with raw pixels, which cannot be read in place: convert the database with "shardtool convert"`
      : mixed(name, 'raw pixels, but the first one has an encoded image'),
  );
}

/** The end of the message about a database whose Datums are not all of the same kind. */
export function mixed(name: string, what: string): string {
  return `the Datum of the key ${name} has ${what}: read the database in Python, and write the images with shardtool.Writer`;
}
