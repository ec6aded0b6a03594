import { FileError } from '@shardtool/base';
import { joinLocation, splitLocation } from '@shardtool/storage';
import { openSibling, type Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { spooled, unpacked } from '../bytes/unpacked.js';
import { ColumnReader, damaged, type StoredValue, unsupported } from '../columns/value-columns.js';
import type { SamplePosition, ShardLayout } from '../layout.js';
import { readPlaces } from '../place-list.js';
import { ARROW, ofArrowRows } from './arrow-rows.js';
import { type ChunkColumns, type ChunkList, columnsOf, parseChunkList } from './chunk-list.js';
import { FRAMED, ofCompressedSamples, ofGroups, ZSTD } from './plain-chunk.js';

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

/** How the samples of a chunk are stored. `plain`: one after the other, so that they can be read individually. */
type ChunkKind = 'plain' | 'compressed' | 'groups' | 'samples' | 'arrow';

async function kindOf(source: Source): Promise<ChunkKind> {
  const head = await edge(source, 0);
  if (head.subarray(0, ZSTD.length).equals(ZSTD)) return 'compressed';
  if (head.equals(FRAMED)) return 'groups';
  if ((await edge(source, source.size - ARROW.length)).equals(ARROW)) return 'arrow';
  const first = head.length < 2 * WORD ? 0 : head.readUInt32LE(WORD);
  // A value of a plain sample cannot be as long as the first bytes of zstd would be.
  return (await edge(source, first)).subarray(0, ZSTD.length).equals(ZSTD) ? 'samples' : 'plain';
}

async function unpack(source: Source): Promise<Source> {
  const kind = await kindOf(source);
  if (kind === 'plain') return source;
  if (kind === 'compressed') return unpacked(source, 'zstd');
  try {
    return await spooled(source, source.location, () => plainChunk(source, kind));
  } finally {
    await source.close();
  }
}

async function* plainChunk(
  source: Source,
  kind: Exclude<ChunkKind, 'plain' | 'compressed'>,
): AsyncGenerator<Uint8Array> {
  if (kind === 'groups') yield* ofGroups(source);
  else if (kind === 'samples') yield* ofCompressedSamples(source);
  else {
    const { config } = await readList(source);
    const { columns } = columnsIn(source.location, config);
    yield* ofArrowRows(
      source,
      columns.map(({ name }, i) => ({ name, serializer: config.data_format[i]! })),
    );
  }
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
  const kind = await kindOf(source);
  if (kind === 'plain') return;
  const reason = {
    compressed: 'it is compressed',
    groups: 'its samples are compressed in groups',
    samples: 'its samples are compressed one by one',
    arrow: 'its rows are in an Arrow table, which newer versions of litdata use for dicts of plain values',
  };
  throw unsupported(
    source.location,
    `${reason[kind]}, so its samples cannot be read individually. Convert it with "shardtool convert", or write it again without compression and with images as litdata.types.Jpeg`,
  );
}

/** Up to 8 bytes; none beyond the end, where a damaged table may lead. */
async function edge(source: Source, offset: number): Promise<Buffer> {
  const bytes = Buffer.alloc(offset < source.size ? ARROW.length : 0);
  if (bytes.length === 0) return bytes;
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
    throw damaged(
      shard,
      offset,
      `the values of sample ${key} take ${at - offset} bytes, but its chunk stores ${end - offset} for it`,
    );
  return values;
}

function nameOf(shard: string): string {
  return splitLocation(shard.replace(/\?.*$/s, '')).name;
}
