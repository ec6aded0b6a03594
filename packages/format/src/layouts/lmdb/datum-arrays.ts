import { encodeNpyHeader } from '../../npy/header.js';
import { NPY_FIELD } from '../../npy/image.js';
import { packedName } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import { becameShorter, FileWindow } from '../bytes/file-window.js';
import { PieceSource } from '../bytes/piece-source.js';
import { damaged, unsupported } from '../columns/value-columns.js';
import type { SamplePosition } from '../layout.js';
import { NumberList } from '../number-list.js';
import { BATCH, inBatches } from '../walk-file.js';
import { type Datum, datumAt, mixed } from './datum.js';
import { headOf, keyText } from './entry-head.js';
import { LmdbDatabase, type LmdbEntry } from './read.js';

/** A raw Datum: its entry, and the header of the array that it becomes. */
interface RawDatum {
  readonly key: string;
  readonly entry: LmdbEntry;
  readonly datum: Datum;
  readonly header: Uint8Array;
  /** Size of the `.npy` file. */
  readonly bytes: number;
}

/**
 * A database of Caffe with raw pixels, presented as if each Datum were a `.npy` file [height, width, channels]: uint8 for
 * `data`, float32 for `float_data`. Caffe stores blue, green and red, plane by plane; here three channels are red, green
 * and blue, and gray bytes become three equal channels. Only conversion reads a database in this way, because each image
 * is computed when it is read.
 */
export class DatumArrays extends PieceSource {
  readonly #database: Source;

  private constructor(database: Source, starts: Float64Array, places: { offset: Float64Array; bytes: Float64Array }) {
    super(database, { starts, load: (piece) => loadArray(database, places.offset[piece]!, places.bytes[piece]!) });
    this.#database = database;
  }

  /** A view of a database whose first value is a raw Datum; any other database unchanged. Owns `database`. */
  static async openIfRaw(database: Source): Promise<Source> {
    if (!(await isRaw(database))) return database;
    const starts = new NumberList();
    const offset = new NumberList();
    const bytes = new NumberList();
    let end = 0;
    starts.push(end);
    try {
      for await (const found of rawDatums(database)) {
        for (const raw of found) {
          offset.push(raw.entry.offset);
          bytes.push(raw.entry.bytes);
          end += raw.bytes;
          starts.push(end);
        }
      }
    } catch (error) {
      await database.close();
      throw error;
    }
    return new DatumArrays(database, starts.toArray(), { offset: offset.toArray(), bytes: bytes.toArray() });
  }

  async *samples(): AsyncGenerator<readonly SamplePosition[]> {
    let offset = 0;
    for await (const found of rawDatums(this.#database)) {
      yield found.map(({ key, datum, bytes }) => {
        const position = { offset, bytes };
        offset += bytes;
        const name = packedName(key)?.key ?? key;
        return { key: name, ...position, fields: [{ name: NPY_FIELD, ...position }], cls: datum.cls };
      });
    }
  }
}

/** Whether the first value of a database is a raw Datum. False if it cannot be read: the walk then says why. */
async function isRaw(source: Source): Promise<boolean> {
  try {
    const database = await LmdbDatabase.open(source);
    const { value: entries } = await database.scan().next();
    const first = entries?.[0];
    if (first === undefined) return false;
    const file = new FileWindow(source);
    const datum = await datumAt(file, source.location, { ...first, key: '' }, await headOf(first, file, database));
    return !datum.isEncoded;
  } catch {
    return false;
  }
}

/** The Datums of a database in the order of their keys. Throws DamagedShardError and UnsupportedShardError. */
function rawDatums(source: Source): AsyncGenerator<readonly RawDatum[]> {
  const { location: shard } = source;
  return inBatches(BATCH, async function* (found: RawDatum[]) {
    const database = await LmdbDatabase.open(source);
    const file = new FileWindow(source);
    for await (const entries of database.scan()) {
      for (const entry of entries) {
        const key = keyText(entry, shard);
        const datum = await datumAt(file, shard, { ...entry, key }, await headOf(entry, file, database));
        const header = arrayHeader(datum, key, entry.offset, shard);
        const values = valuesIn(datum);
        found.push({ key, entry, datum, header, bytes: header.length + values * (isFloats(datum) ? 4 : 1) });
      }
      yield;
    }
  });
}

const isFloats = ({ kind }: Datum) => kind !== 'bytes';

/** The number of channels of the array. */
const channelsOf = (datum: Datum) => (datum.shape![0] === 1 && !isFloats(datum) ? 3 : datum.shape![0]);

function valuesIn(datum: Datum): number {
  const [, height, width] = datum.shape!;
  return channelsOf(datum) * height * width;
}

function arrayHeader(datum: Datum, key: string, offset: number, shard: string): Uint8Array {
  const { shape, isEncoded, length } = datum;
  const name = JSON.stringify(key);
  if (isEncoded) throw unsupported(shard, mixed(name, 'an encoded image, but the first one has raw pixels'));
  if (shape === null || (!isFloats(datum) && shape[0] * shape[1] * shape[2] !== length)) {
    const expected = shape === null ? 'no size' : `the size ${shape.join(' x ')}`;
    throw damaged(shard, offset, `the Datum of the key ${name} has ${length} bytes of pixels, but ${expected}`);
  }
  const [, height, width] = shape;
  return encodeNpyHeader(isFloats(datum) ? '<f4' : '|u1', [height, width, channelsOf(datum)]);
}

/** The `.npy` file of the Datum at this position. */
async function loadArray(source: Source, offset: number, bytes: number): Promise<Uint8Array> {
  const { location: shard } = source;
  const value = Buffer.allocUnsafeSlow(bytes);
  const read = await source.readAt(offset, value);
  if (read < bytes) throw becameShorter(shard, offset + read);
  const datum = await datumAt(new FileWindow(source), shard, { key: '', offset, bytes }, value);
  const header = arrayHeader(datum, '', offset, shard);
  const array = Buffer.allocUnsafe(header.length + valuesIn(datum) * (isFloats(datum) ? 4 : 1));
  array.set(header);
  (isFloats(datum) ? copyFloats : copyBytes)(datum, value, array.subarray(header.length));
  return array;
}

/** The plane in a Datum that a channel of the array comes from: blue is first there, and last here. */
const planeOf = (channel: number, planes: number) => (planes === 3 ? 2 - channel : planes === 1 ? 0 : channel);

function copyBytes(datum: Datum, value: Buffer, target: Buffer): void {
  const [planes, height, width] = datum.shape!;
  const [area, channels] = [height * width, channelsOf(datum)];
  for (let channel = 0; channel < channels; channel++) {
    let from = datum.at + planeOf(channel, planes) * area;
    for (let to = channel; to < target.length; to += channels) target[to] = value[from++]!;
  }
}

function copyFloats(datum: Datum, value: Buffer, target: Buffer): void {
  const [planes, height, width] = datum.shape!;
  const area = height * width;
  // Floats that are stored one by one have a tag each.
  const [step, skipped] = datum.kind === 'floats' ? [5, 1] : [4, 0];
  for (let channel = 0; channel < planes; channel++) {
    let from = datum.at + planeOf(channel, planes) * area * step + skipped;
    for (let to = 4 * channel; to < target.length; to += 4 * planes, from += step)
      value.copy(target, to, from, from + 4);
  }
}
