import { ImageEncoder, MapEncoder } from '../../sample/sample-codec.js';
import type { WrittenLayout } from '../layout.js';
import { LMDB } from './entry.js';
import { salvage } from './salvage.js';
import { samples } from './samples.js';
import { LmdbWriter, RULES } from './write.js';

export { LmdbDatabase, type LmdbEntry } from './read.js';

/**
 * Shards as LMDB databases: a folder with `data.mdb` in it, in the data format of liblmdb 0.9, which Python's lmdb and
 * `mdb_stat` open. The value of a key is a msgpack map of the sample's fields. Reading takes {@link lmdbImages} as well.
 */
export const lmdb: WrittenLayout = {
  name: 'lmdb',
  extension: LMDB.extension,
  innerFile: LMDB.innerFile,
  rules: RULES,
  createWriter: (fd, shard, most) => new LmdbWriter(fd, shard, new MapEncoder(false), most),
  samples,
  salvage,
};

/** The same with the encoded image alone as the value, and nothing else in the database, as torchvision's LSUN reads it. */
export const lmdbImages: WrittenLayout = {
  ...lmdb,
  imageOnly: true,
  rules: { ...RULES, maxFields: 1 },
  createWriter: (fd, shard, most) => new LmdbWriter(fd, shard, new ImageEncoder(), most),
};
