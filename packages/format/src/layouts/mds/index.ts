import type { UnsupportedShardError } from '@shardtool/base';
import { z } from 'zod';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { unpacked } from '../bytes/unpacked.js';
import { decodeTable, isField, SampleOfTable, TABLE_MARK } from '../columns/table.js';
import { ColumnReader, damaged, unsupported } from '../columns/value-columns.js';
import type { SamplePosition, TableLayout } from '../layout.js';
import { readPlaces } from '../place-list.js';
import { type MdsColumn, roleOf, valueRoleOf } from './columns.js';
import { listOf, MdsWriter } from './write.js';

/**
 * Shards of MosaicML's StreamingDataset, read in place. A shard is a number of samples, the offset of each and of the
 * end (uint32, little-endian), JSON that names the columns, and the samples: the lengths of values of variable length,
 * then all values (mosaicml-streaming, base/format/mds/writer.py). Samples have no keys there: here the key is the
 * shard's name and the sample's number. Pickled columns are rejected: reading them means running their content.
 */
export const mds: TableLayout = {
  name: 'mds',
  extension: '.mds',
  isOpenedByWalk: true,
  columnNames: { image: 'image', cls: 'label' },
  samples,
  unpack,
  ofTable: (table) => ({
    ...mds,
    table,
    list: (shards) => listOf(table, shards),
    createWriter: (fd, shard, most, samples = 0) => new MdsWriter(fd, shard, table, samples, most),
  }),
};

async function unpack(source: Source): Promise<Source> {
  return IS_PLAIN.test(source.location) ? source : unpacked(source);
}

/** The query of a URL is not part of the name. */
const IS_PLAIN = /\.mds(\?.*)?$/s;

const WORD = 4;
/** A shard holds less than 4 GiB, and its JSON a few names. */
const MOST_CONFIG_BYTES = 1 << 20;
/** In our shards a single value may be a label that is a text. */
const MOST_TEXT_BYTES = 1 << 28;
const YIELDED = 256;

const CONFIG = z.object({
  version: z.literal(2),
  column_names: z.array(z.string()),
  column_encodings: z.array(z.string()),
  column_sizes: z.array(z.int().nonnegative().nullable()),
  [TABLE_MARK]: z.unknown().optional(),
});

async function* samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  const { location: shard } = source;
  if (!IS_PLAIN.test(shard)) throw compressed(shard);
  const window = new FileWindow(source);
  const places = await readPlaces(source, window);
  const columns = await readColumns(source, window, places);
  const stem = shard.slice(Math.max(shard.lastIndexOf('/'), shard.lastIndexOf('\\')) + 1).replace(/\.mds$/, '');
  const reader = new ColumnReader(window, shard, columns);
  let found: SamplePosition[] = [];
  for (let number = 0; number + 1 < places.length; number++) {
    const span = { offset: places[number]!, bytes: places[number + 1]! - places[number]! };
    const key = `${stem}/${String(number).padStart(6, '0')}`;
    found.push(await readSample(window, shard, { key, ...span }, columns, reader));
    if (found.length < YIELDED) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

async function readColumns(source: Source, window: FileWindow, places: Uint32Array): Promise<readonly MdsColumn[]> {
  const { location: shard } = source;
  const at = (places.length + 1) * WORD;
  const bytes = places[0]! - at;
  if (bytes > MOST_CONFIG_BYTES) throw damaged(shard, at, 'its list of columns exceeds the size limit');
  const text = (await window.at(at, bytes)).subarray(0, bytes).toString('utf8');
  const config = parseConfig(text);
  if (config === null) throw damaged(shard, at, 'its list of columns cannot be read');
  const ours = decodeTable(config[TABLE_MARK]);
  const isOurs = ours !== null && config.column_names.every((name) => ours.has(name));
  return config.column_names.map((name, i) => {
    const encoding = config.column_encodings[i]!;
    const role = roleOf(encoding);
    if (encoding === 'pkl') {
      throw unsupported(
        shard,
        `its column "${name}" is pickled, and reading it would mean running its content; write it again without that column`,
      );
    }
    if (role === null) {
      throw unsupported(
        shard,
        `its column "${name}" has the unknown encoding ${JSON.stringify(encoding)}; write it again with another encoding`,
      );
    }
    const column = { name, bytes: config.column_sizes[i] || null, role };
    if (!isOurs) return column;
    const of = ours.get(name)!;
    const own = isField(of) ? role : valueRoleOf(encoding);
    if (own === null || (isField(of) && role.kind !== 'bytes'))
      throw damaged(shard, at, `its column "${name}" does not match its description`);
    return { ...column, role: own, of };
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
  reader: ColumnReader,
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
    throw damaged(shard, offset, `the values of sample ${key} take ${at - offset} bytes, but it has ${bytes}`);
  if (columns.some(({ of }) => of !== undefined)) {
    const sample = new SampleOfTable();
    for (const { column, ...place } of values) {
      if (isField(column.of!)) sample.field(column.of!, place);
      else sample.value(column.of!, await reader.value(key, { column, ...place }, MOST_TEXT_BYTES));
    }
    return { offset, bytes, ...sample.read((why) => damaged(shard, offset, `sample ${key} ${why}`)) };
  }
  return { key, offset, bytes, ...(await reader.sample(key, values)) };
}

function compressed(shard: string): UnsupportedShardError {
  return unsupported(
    shard,
    'it is compressed, so its samples cannot be read individually. Convert it with "shardtool convert", or write it again without compression',
  );
}
