import { FileError } from '@shardtool/base';
import { joinLocation, splitLocation } from '@shardtool/storage';
import { openSibling, type Source } from '../../source.js';
import { FileWindow } from '../file-window.js';
import type { SamplePosition, ShardLayout } from '../layout.js';
import { readPlaces } from '../place-list.js';
import { unpacked } from '../unpacked.js';
import { ColumnReader, damaged, type StoredValue, unsupported } from '../value-columns.js';
import { type ChunkColumns, type ChunkList, columnsOf, parseChunkList } from './chunk-list.js';

/**
 * Chunks of Lightning's LitData, read as they are. A chunk is a number of samples, the place of each and of the end (uint32,
 * little-endian), and the samples: the length of each value, then all values (litdata, streaming/writer.py). What the values are
 * stands in `index.json` beside. Samples have no keys there: theirs are the chunk's name and their number. Pickled values are refused: to read them
 * is to run what is in them.
 */
export const litdata: ShardLayout = { name: 'litdata', extension: '.bin', isOpenedByWalk: true, samples, unpack };

const WORD = 4;
const LIST_FILE = 'index.json';
const MOST_LIST_BYTES = 1 << 28;
const YIELDED = 256;
/** How a chunk begins that is compressed as a whole, and one whose samples are, some at a time. */
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const FRAMED = Buffer.from('LDFZ01\0\0', 'latin1');
/** How one ends that has its rows in a table of Arrow. */
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
    throw damaged(shard, 0, `it has ${places.length - 1} samples, and ${LIST_FILE} says ${listed.chunk_size}`);
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

/** Throws for chunks whose samples do not lie in them one by one. */
async function checkKind(source: Source): Promise<void> {
  const { location: shard } = source;
  const head = await edge(source, 0);
  if (head.subarray(0, ZSTD.length).equals(ZSTD)) {
    const what =
      'it is compressed, so no sample of it can be read by itself: "shardtool convert" reads it, or write it anew without compression';
    throw unsupported(shard, what);
  }
  if (head.equals(FRAMED))
    throw unsupported(
      shard,
      'its samples are compressed some at a time, which is not read; write it anew without compression',
    );
  if ((await edge(source, source.size - ARROW.length)).equals(ARROW)) {
    const what =
      'its rows lie in a table of Arrow, as newer versions of litdata keep dicts of plain values, which is not read; write images as litdata.types.Jpeg, or samples as tuples';
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
    const message = `${shard} cannot be read without ${LIST_FILE}, which says what its values are and is not beside it (${cause.message}); fetch it, too.`;
    throw new FileError({ path: location }, message, { cause });
  });
  try {
    const bytes = Buffer.alloc(Math.min(source.size, MOST_LIST_BYTES));
    const read = await source.readAt(0, bytes);
    return parseChunkList(bytes.toString('utf8', 0, read));
  } catch (cause) {
    if (cause instanceof FileError) throw cause;
    const message = `${location} cannot be read as what LitData says of its chunks; fetch it again.`;
    throw new FileError({ path: location }, message, { cause });
  } finally {
    await source.close();
  }
}

function columnsIn(shard: string, config: ChunkList['config']): ChunkColumns {
  if (config.encryption != null)
    throw unsupported(shard, 'it is encrypted, which is not read; write it anew without encryption');
  const loader = config.item_loader ?? 'PyTreeLoader';
  if (loader !== 'PyTreeLoader')
    throw unsupported(shard, `it was written for ${JSON.stringify(loader)}, and only chunks for PyTreeLoader are read`);
  if (config.compression != null && (config.compression_level ?? 'chunk') !== 'chunk')
    throw unsupported(
      shard,
      'its samples are compressed one by one, which is not read; write it anew without compression',
    );
  const refuse = (column: string, serializer: string) =>
    unsupported(
      shard,
      serializer === 'pickle'
        ? `its value "${column}" is pickled, and to read that is to run what is in it; write it anew without that value`
        : `its value "${column}" was written by the serializer ${JSON.stringify(serializer)}, which is not read; write it anew as bytes`,
    );
  try {
    return columnsOf(config, refuse);
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'UnsupportedShardError') throw cause;
    throw damaged(shard, 0, `what ${LIST_FILE} says of its values cannot be read`);
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
    throw damaged(
      shard,
      offset,
      `the values of sample ${key} take ${at - offset} bytes, and there are ${end - offset}`,
    );
  return values;
}

function nameOf(shard: string): string {
  return splitLocation(shard.replace(/\?.*$/s, '')).name;
}
