import { OptionError } from '../errors.js';

/** What the index says of one shard. */
export interface WidsShard {
  /** The tar, relative to the folder of the index. */
  readonly file: string;
  readonly samples: number;
  readonly bytes: number;
  /** md5 of the file in hexadecimal. */
  readonly md5: string;
}

/**
 * The index with which `wids.ShardListDataset` of webdataset opens tars for access by number: JSON of the kind
 * `wids-shard-index-v1` (webdataset, wids/wids_index.py and wids/wids_specs.py). Shards of no samples are left out, since
 * wids cannot open them. Throws {@link OptionError} where no sample is left, and for shards that are no tars.
 */
export function widsIndex(shards: readonly WidsShard[]): string {
  const other = shards.find(({ file }) => !file.endsWith('.tar'));
  if (other !== undefined) {
    throw new OptionError(
      { shard: other.file },
      `${other.file} is no tar, and wids reads no others; pack to tar for it.`,
    );
  }
  const shardlist = shards
    .filter(({ samples }) => samples > 0)
    .map(({ file, md5, samples, bytes }) => ({ url: file, md5sum: md5, nsamples: samples, filesize: bytes }));
  if (shardlist.length === 0) throw new OptionError({}, 'wids takes no dataset without samples; leave its index out.');
  return `${JSON.stringify({ __kind__: 'wids-shard-index-v1', wids_version: 1, shardlist }, null, 2)}\n`;
}
