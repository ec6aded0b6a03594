import { z } from 'zod';
import { CutShardError, DamagedShardError, UnsupportedShardError } from '../../errors.js';
import { imageKindOf, SIGNATURE_BYTES } from '../../image/kinds.js';
import type { ColumnValue } from '../../shard-index/label-column.js';
import type { Source } from '../../source.js';
import { classColumnOf, fieldOfColumn, imageColumnOf, labelOfColumn } from '../column-names.js';
import { FileWindow } from '../file-window.js';
import type { FieldPosition, SamplePosition, ShardLayout } from '../layout.js';
import { unpacked } from '../unpacked.js';
import { type MdsColumn, roleOf } from './columns.js';

/**
 * Shards of MosaicML's StreamingDataset, read as they are. A shard is a number of samples, the place of each and of the
 * end (uint32, little-endian), JSON that names the columns, and the samples: the lengths of those values whose length
 * differs, then all values (mosaicml-streaming, base/format/mds/writer.py). Samples have no keys there: theirs are the
 * shard's name and their number. Pickled columns are refused: to read them is to run what is in them.
 */
export const mds: ShardLayout = { name: 'mds', extension: '.mds', isOpenedByWalk: true, samples, unpack };

async function unpack(source: Source): Promise<Source> {
  return IS_PLAIN.test(source.location) ? source : unpacked(source);
}

/** What follows "?" in an address is no part of a name. */
const IS_PLAIN = /\.mds(\?.*)?$/s;

const WORD = 4;
/** A shard holds less than 4 GiB, and its JSON a few names. */
const MOST_CONFIG_BYTES = 1 << 20;
/** A single value that is written as text is a number. */
const MOST_VALUE_BYTES = 1 << 16;
const YIELDED = 256;

const CONFIG = z.object({
  version: z.literal(2),
  column_names: z.array(z.string()),
  column_encodings: z.array(z.string()),
  column_sizes: z.array(z.int().nonnegative().nullable()),
});

async function* samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  const { location: shard } = source;
  if (!IS_PLAIN.test(shard)) throw compressed(shard);
  const window = new FileWindow(source);
  const places = await readPlaces(source, window);
  const columns = await readColumns(source, window, places);
  const stem = shard.slice(Math.max(shard.lastIndexOf('/'), shard.lastIndexOf('\\')) + 1).replace(/\.mds$/, '');
  const naming = new Naming(shard, columns);
  let found: SamplePosition[] = [];
  for (let number = 0; number + 1 < places.length; number++) {
    const span = { offset: places[number]!, bytes: places[number + 1]! - places[number]! };
    const key = `${stem}/${String(number).padStart(6, '0')}`;
    found.push(await readSample(window, shard, { key, ...span }, columns, naming));
    if (found.length < YIELDED) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** Where each sample begins, and the last one ends. */
async function readPlaces(source: Source, window: FileWindow): Promise<Uint32Array> {
  const { location: shard, size } = source;
  if (size < 2 * WORD) throw cut(shard, size);
  const count = (await window.at(0, WORD)).readUInt32LE(0);
  const end = (count + 2) * WORD;
  if (end > size) throw cut(shard, size);
  const bytes = new Uint8Array((count + 1) * WORD);
  if ((await source.readAt(WORD, bytes)) < bytes.length) throw cut(shard, size);
  const view = new DataView(bytes.buffer);
  const places = Uint32Array.from({ length: count + 1 }, (_, i) => view.getUint32(i * WORD, true));
  if (places.at(-1)! > size) throw cut(shard, size);
  const wrong = places.findIndex((place, i) => place < (places[i - 1] ?? end));
  if (wrong !== -1) throw damaged(shard, WORD * (1 + wrong), `sample ${wrong} begins before what comes before it`);
  return places;
}

async function readColumns(source: Source, window: FileWindow, places: Uint32Array): Promise<readonly MdsColumn[]> {
  const { location: shard } = source;
  const at = (places.length + 1) * WORD;
  const bytes = places[0]! - at;
  if (bytes > MOST_CONFIG_BYTES) throw damaged(shard, at, 'its list of columns is longer than any is');
  const text = (await window.at(at, bytes)).subarray(0, bytes).toString('utf8');
  const config = parseConfig(text);
  if (config === null) throw damaged(shard, at, 'its list of columns cannot be read');
  return config.column_names.map((name, i) => {
    const encoding = config.column_encodings[i]!;
    const role = roleOf(encoding);
    if (encoding === 'pkl') {
      throw unsupported(
        shard,
        `its column "${name}" is pickled, and to read that is to run what is in it; write it anew without that column`,
      );
    }
    if (role === null) {
      throw unsupported(
        shard,
        `its column "${name}" has the encoding ${JSON.stringify(encoding)}, which is not known; write it anew with another`,
      );
    }
    return { name, bytes: config.column_sizes[i] || null, role };
  });
}

function parseConfig(text: string): z.infer<typeof CONFIG> | null {
  try {
    const config = CONFIG.parse(JSON.parse(text));
    const count = config.column_names.length;
    const isWhole = config.column_encodings.length === count && config.column_sizes.length === count;
    return isWhole && new Set(config.column_names).size === count ? config : null;
  } catch {
    return null;
  }
}

async function readSample(
  window: FileWindow,
  shard: string,
  { key, offset, bytes }: Pick<SamplePosition, 'key' | 'offset' | 'bytes'>,
  columns: readonly MdsColumn[],
  naming: Naming,
): Promise<SamplePosition> {
  const end = offset + bytes;
  const head = columns.filter((column) => column.bytes === null).length * WORD;
  if (head > bytes) throw damaged(shard, offset, `sample ${key} is shorter than the lengths of its values`);
  const lengths = await window.at(offset, head);
  let length = 0;
  let at = offset + head;
  const values = columns.map((column) => {
    const start = at;
    at += column.bytes ?? lengths.readUInt32LE(WORD * length++);
    return { column, offset: start, bytes: at - start };
  });
  if (at !== end)
    throw damaged(shard, offset, `the values of sample ${key} take ${at - offset} bytes, and there are ${bytes}`);
  const fields: FieldPosition[] = [];
  const labels = new Map<string, ColumnValue>();
  let cls = -1;
  for (const { column, ...place } of values) {
    const { name, role } = column;
    if (role.kind === 'bytes') {
      const peek = Math.min(place.bytes, SIGNATURE_BYTES);
      const first = peek === 0 ? new Uint8Array(0) : (await window.at(place.offset, peek)).subarray(0, peek);
      fields.push({ name: naming.field(name, first, role.extension), ...place });
      continue;
    }
    const value = await valueAt(window, shard, key, column, place);
    if (name === naming.cls && Number.isInteger(value) && (value as number) >= -1 && (value as number) <= 0x7fffffff) {
      cls = value as number;
    } else labels.set(labelOfColumn(name), value);
  }
  return { key, offset, bytes, fields, cls, labels };
}

async function valueAt(
  window: FileWindow,
  shard: string,
  key: string,
  { name, role }: MdsColumn,
  { offset, bytes }: { readonly offset: number; readonly bytes: number },
): Promise<ColumnValue> {
  if (bytes > MOST_VALUE_BYTES)
    throw damaged(shard, offset, `column "${name}" of sample ${key} is too long for a number`);
  const stored = (await window.at(offset, bytes)).subarray(0, bytes);
  try {
    return (role as Extract<MdsColumn['role'], { kind: 'value' }>).value(
      new DataView(stored.buffer, stored.byteOffset, stored.byteLength),
    );
  } catch {
    throw damaged(shard, offset, `column "${name}" of sample ${key} is not a value of its encoding`);
  }
}

/** What columns become, by their names and what is in them. */
class Naming {
  readonly cls: string | undefined;
  readonly #fields = new Map<string, string>();
  readonly #image: string | undefined;
  readonly #columnOf = new Map<string, string>();
  readonly #shard: string;

  constructor(shard: string, columns: readonly MdsColumn[]) {
    this.#shard = shard;
    const values = columns.filter(({ role }) => role.kind === 'value').map(({ name }) => name);
    this.cls = classColumnOf(values);
    const isOpen = ({ role }: MdsColumn) => role.kind === 'bytes' && role.extension === 'bin';
    this.#image = imageColumnOf(columns.filter(isOpen).map(({ name }) => name));
  }

  field(name: string, first: Uint8Array, extension: string): string {
    const kind = imageKindOf(first);
    const known = this.#fields.get(`${name} ${kind}`);
    if (known !== undefined) return known;
    const field = fieldOfColumn(name, first, name === this.#image, extension);
    this.#fields.set(`${name} ${kind}`, field);
    const other = this.#columnOf.get(field);
    if (other !== undefined && other !== name)
      throw unsupported(
        this.#shard,
        `its columns "${other}" and "${name}" would both be the field "${field}"; rename one of them`,
      );
    this.#columnOf.set(field, name);
    return field;
  }
}

function cut(shard: string, size: number): CutShardError {
  return new CutShardError(
    { shard, offset: size },
    `${shard}: it ends at byte ${size}, before its last sample does; fetch or write it again.`,
  );
}

function damaged(shard: string, offset: number, what: string): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; it is damaged: fetch or write it again.`);
}

function unsupported(shard: string, what: string): UnsupportedShardError {
  return new UnsupportedShardError({ shard }, `${shard}: ${what}.`);
}

function compressed(shard: string): UnsupportedShardError {
  return unsupported(
    shard,
    'it is compressed, so no sample of it can be read by itself: "shardtool convert" reads it, or write it anew without compression',
  );
}
