import { FileError } from '@shardtool/base';
import { joinLocation, splitLocation } from '@shardtool/storage';
import { openSibling, type Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { unpacked } from '../bytes/unpacked.js';
import { ColumnReader, damaged, type StoredValue, unsupported } from '../columns/value-columns.js';
import type { SamplePosition, ShardLayout } from '../layout.js';
import { readPlaces } from '../place-list.js';
import { type ChunkColumns, type ChunkList, columnsOf, parseChunkList } from './chunk-list.js';

/**
 * Chunks of Lightning's LitData, read in place. A chunk is a number of samples, the offset of each and of the end
 * (uint32, little-endian), and the samples: the length of each value, then all values (litdata, streaming/writer.py).
 * `index.json` next to it describes the values. Samples have no keys there: here the key is the chunk's name and the
 * sample's number. Pickled values are rejected: reading them means running their content.
 */
export const litdata: ShardLayout = { name: 'litdata', extension: '.bin', isOpenedByWalk: true, samples, unpack };

const WORD = 4;
const LIST_FILE = 'index.json';
const MOST_LIST_BYTES = 1 << 28;
const YIELDED = 256;
/** The first bytes of a chunk that is compressed as a whole, and of one with groups of compressed samples. */
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const FRAMED = Buffer.from('LDFZ01\0\0', 'latin1');
/** The last bytes of a chunk with its rows in an Arrow table. */
const ARROW = Buffer.from('LDARW01\0', 'latin1');

async function unpack(source: Source): Promise<Source> {
  const head = await edge(source, 0);
  return head.subarray(0, ZSTD.length).equals(ZSTD) ? unpacked(source, 'zstd') : source;
}

async function* samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  const { location: shard } = source;
  await checkKind(source);
  const list = await readList(source);
  const named = nameOf(shard);
  const window = new FileWindow(source);
  const places = await readPlaces(source, window);
  const listed = list.chunks.find(({ filename }) => filename === named);
  if (listed !== undefined && listed.chunk_size !== places.length - 1)
    throw damaged(shard, 0, `it has ${places.length - 1} samples, but ${LIST_FILE} says ${listed.chunk_size}`);
  const { columns, cls } = columnsIn(shard, list.config);
  const reader = new ColumnReader(window, shard, columns, cls);
  const stem = named.replace(/(\.\w+(:\d+)?)?\.bin$/, '');
  let found: SamplePosition[] = [];
  for (let number = 0; number + 1 < places.length; number++) {
    const [offset, end] = [places[number]!, places[number + 1]!];
    const key = `${stem}/${String(number).padStart(6, '0')}`;
    const values = await valuesAt(window, shard, key, offset, end, columns);
    found.push({ key, offset, bytes: end - offset, ...(await reader.sample(key, values)) });
    if (found.length < YIELDED) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** Throws for chunks whose samples are not stored one by one. */
async function checkKind(source: Source): Promise<void> {
  const { location: shard } = source;
  const head = await edge(source, 0);
  if (head.subarray(0, ZSTD.length).equals(ZSTD)) {
    const what =
      'it is compressed, so its samples cannot be read individually. Convert it with "shardtool convert", or write it again without compression';
    throw unsupported(shard, what);
  }
  if (head.equals(FRAMED))
    throw unsupported(
      shard,
      'its samples are compressed in groups, which shardtool does not read; write it again without compression',
    );
  if ((await edge(source, source.size - ARROW.length)).equals(ARROW)) {
    const what =
      'its rows are in an Arrow table, which newer versions of litdata use for dicts of plain values and which shardtool does not read. Write images as litdata.types.Jpeg, or samples as tuples';
    throw unsupported(shard, what);
  }
}

/** Up to 8 bytes. */
async function edge(source: Source, offset: number): Promise<Buffer> {
  const bytes = Buffer.alloc(ARROW.length);
  return bytes.subarray(0, await source.readAt(Math.max(0, offset), bytes));
}

async function readList(chunk: Source): Promise<ChunkList> {
  const { location: shard } = chunk;
  const location = joinLocation(splitLocation(shard).folder, LIST_FILE);
  const source = await openSibling(chunk, LIST_FILE).catch((cause: Error) => {
    const message = `${shard} cannot be read without ${LIST_FILE}, which describes its values and is not next to it (${cause.message}); fetch it, too.`;
    throw new FileError({ path: location }, message, { cause });
  });
  try {
    const bytes = Buffer.alloc(Math.min(source.size, MOST_LIST_BYTES));
    const read = await source.readAt(0, bytes);
    return parseChunkList(bytes.toString('utf8', 0, read));
  } catch (cause) {
    if (cause instanceof FileError) throw cause;
    const message = `${location} cannot be read as LitData's list of chunks; fetch it again.`;
    throw new FileError({ path: location }, message, { cause });
  } finally {
    await source.close();
  }
}

function columnsIn(shard: string, config: ChunkList['config']): ChunkColumns {
  if (config.encryption != null)
    throw unsupported(shard, 'it is encrypted, which shardtool does not read; write it again without encryption');
  const loader = config.item_loader ?? 'PyTreeLoader';
  if (loader !== 'PyTreeLoader')
    throw unsupported(
      shard,
      `it was written for ${JSON.stringify(loader)}, but shardtool reads only chunks for PyTreeLoader`,
    );
  if (config.compression != null && (config.compression_level ?? 'chunk') !== 'chunk')
    throw unsupported(
      shard,
      'its samples are compressed one by one, which shardtool does not read; write it again without compression',
    );
  const refuse = (column: string, serializer: string) =>
    unsupported(
      shard,
      serializer === 'pickle'
        ? `its value "${column}" is pickled, and reading it would mean running its content; write it again without that value`
        : `its value "${column}" was written by the serializer ${JSON.stringify(serializer)}, which shardtool does not read; write it again as bytes`,
    );
  try {
    return columnsOf(config, refuse);
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'UnsupportedShardError') throw cause;
    throw damaged(shard, 0, `the description of its values in ${LIST_FILE} cannot be read`);
  }
}

async function valuesAt(
  window: FileWindow,
  shard: string,
  key: string,
  offset: number,
  end: number,
  columns: ChunkColumns['columns'],
): Promise<StoredValue[]> {
  const head = columns.length * WORD;
  if (head > end - offset) throw damaged(shard, offset, `sample ${key} is shorter than the lengths of its values`);
  const lengths = await window.at(offset, head);
  let at = offset + head;
  const values = columns.map((column, i) => {
    const start = at;
    at += lengths.readUInt32LE(i * WORD);
    return { column, offset: start, bytes: at - start };
  });
  if (at !== end)
    throw damaged(shard, offset, `the values of sample ${key} take ${at - offset} bytes, but it has ${end - offset}`);
  return values;
}

function nameOf(shard: string): string {
  return splitLocation(shard.replace(/\?.*$/s, '')).name;
}
