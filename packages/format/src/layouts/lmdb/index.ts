import type { SampleRules } from '../../sample/sample-check.js';
import { ImageEncoder, MapEncoder, type ValueEncoder } from '../../sample/sample-codec.js';
import type { WrittenLayout } from '../layout.js';
import { DatumArrays } from './datum-arrays.js';
import { LMDB } from './entry.js';
import { salvage } from './salvage.js';
import { samples } from './samples.js';
import { LmdbWriter, plannedBytes, RULES } from './write/write.js';

export { LmdbDatabase, type LmdbEntry } from './read.js';

/**
 * Shards as LMDB databases: a folder with `data.mdb` in it, in the data format of liblmdb 0.9, which Python's lmdb and
 * `mdb_stat` open. The value of a key is a msgpack map of the sample's fields. Reading also accepts {@link lmdbImages},
 * and databases of other software.
 */
export const lmdb: WrittenLayout = {
  name: 'lmdb',
  extension: LMDB.extension,
  innerFile: LMDB.innerFile,
  rules: rulesOf(new MapEncoder(false), RULES),
  createWriter: (fd, shard, most) => new LmdbWriter(fd, shard, new MapEncoder(false), most),
  samples,
  salvage,
  unpack: DatumArrays.openIfRaw,
};

/** LMDB databases with the encoded image alone as the value, and nothing else, as torchvision's LSUN reads them. */
export const lmdbImages: WrittenLayout = {
  ...lmdb,
  imageOnly: true,
  rules: rulesOf(new ImageEncoder(), { ...RULES, maxFields: 1 }),
  createWriter: (fd, shard, most) => new LmdbWriter(fd, shard, new ImageEncoder(), most),
};

/** The rules with LMDB's own size limit, to check samples before there is a shard. */
function rulesOf(encoder: ValueEncoder, rules: SampleRules): SampleRules {
  return { ...rules, checkStored: (shard, key, fields) => void plannedBytes(encoder, shard, key, fields) };
}
