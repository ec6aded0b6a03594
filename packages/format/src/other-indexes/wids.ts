import { EntryNameError, OptionError } from '@shardtool/base';
import type { ShardIndex } from '../shard-index/shard-index.js';

/** The index entry of one shard. */
export interface WidsShard {
  /** The tar, relative to the folder of the index. */
  readonly file: string;
  readonly samples: number;
  readonly bytes: number;
  /** md5 of the file in hexadecimal. */
  readonly md5: string;
}

/**
 * The index with which `wids.ShardListDataset` of webdataset opens tars for random access: JSON of the kind
 * `wids-shard-index-v1` (webdataset, wids/wids_index.py and wids/wids_specs.py). It omits shards without samples,
 * because wids cannot open them. Throws {@link OptionError} if no sample remains, and for shards that are not tars.
 */
export function widsIndex(shards: readonly WidsShard[]): string {
  const other = shards.find(({ file }) => !file.endsWith('.tar'));
  if (other !== undefined) {
    throw new OptionError(
      { shard: other.file },
      `${other.file} is not a tar, and wids reads only tars; pack to tar to use wids.`,
    );
  }
  const shardlist = shards
    .filter(({ samples }) => samples > 0)
    .map(({ file, md5, samples, bytes }) => ({ url: file, md5sum: md5, nsamples: samples, filesize: bytes }));
  if (shardlist.length === 0) throw new OptionError({}, 'wids does not read datasets without samples; omit its index.');
  return `${JSON.stringify({ __kind__: 'wids-shard-index-v1', wids_version: 1, shardlist }, null, 2)}\n`;
}

/** Length of the name field of a header. wids reads only this field, neither prefixes nor pax records. */
const NAME_BYTES = 100;
const BLOCK_BYTES = 512;

/**
 * Throws {@link EntryNameError} for a file of a tar whose name wids would read only in part: one of more than 100
 * bytes, or one stored in a separate record before the header. wids would mix up such samples silently.
 */
export function checkWidsNames(
  { key, offset, fields }: Pick<ShardIndex, 'key' | 'offset' | 'fields'>,
  shard: string,
): void {
  for (const [row, name] of key.entries()) {
    const places = [...fields].map(([field, columns]) => {
      return { entry: `${name}.${field}`, at: columns.offset[row]!, bytes: columns.bytes[row]! };
    });
    let end = offset[row]!;
    for (const { entry, at, bytes } of places.filter((place) => place.at >= 0).sort((a, b) => a.at - b.at)) {
      const isAscii = Buffer.byteLength(entry) === entry.length;
      if (Buffer.byteLength(entry) > NAME_BYTES || (!isAscii && at - end > BLOCK_BYTES))
        throw unread(shard, name, entry);
      end = Math.ceil((at + bytes) / BLOCK_BYTES) * BLOCK_BYTES;
    }
  }
}

/**
 * {@link checkWidsNames} for a file that is not written yet: our tar writer stores a name that is not ASCII in a
 * separate record. `entry` is its name, `key.field`.
 */
export function checkWidsName(shard: string, key: string, entry: string): void {
  const bytes = Buffer.byteLength(entry);
  if (bytes > NAME_BYTES || bytes !== entry.length) throw unread(shard, key, entry);
}

function unread(shard: string, key: string, entry: string): EntryNameError {
  const why =
    Buffer.byteLength(entry) > NAME_BYTES ? `is longer than ${NAME_BYTES} bytes` : 'has characters that are not ASCII';
  const shown = entry.length > 200 ? `${entry.slice(0, 200)}...` : entry;
  const message = `${shard}: the name ${JSON.stringify(shown)} ${why}, so wids would read it wrongly; rename it, or omit the index for wids.`;
  return new EntryNameError({ shard, key }, message);
}
