import { TruncatedShardError } from '@shardtool/base';
import type { Source } from '../source.js';
import type { FileWindow } from './bytes/file-window.js';
import { damaged } from './columns/value-columns.js';

const WORD = 4;

/**
 * Reads the beginning of an MDS or LitData shard: a number of samples, then the offset of each and of the end (uint32,
 * little-endian). Returns the start of each sample, and the end of the last one. Throws {@link TruncatedShardError} and
 * DamagedShardError.
 */
export async function readPlaces(source: Source, window: FileWindow): Promise<Uint32Array> {
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
  if (wrong !== -1)
    throw damaged(shard, WORD * (1 + wrong), `sample ${wrong} begins before the end of the one before it`);
  return places;
}

function cut(shard: string, size: number): TruncatedShardError {
  return new TruncatedShardError(
    { shard, offset: size },
    `${shard}: it ends at byte ${size}, before its last sample does; fetch or write it again.`,
  );
}
