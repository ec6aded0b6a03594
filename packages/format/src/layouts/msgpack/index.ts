import type { WrittenLayout } from '../layout.js';
import { MSGPACK } from './entry.js';
import { salvage } from './salvage.js';
import { samples } from './samples.js';
import { MsgpackWriter, RULES } from './write.js';

/**
 * Shards as a stream of msgpack maps, one per sample: `{"__key__": str, "jpg": bin, "cls": int, ...}`, without
 * extension types, as Python's `msgpack.Unpacker(file)` reads them.
 */
export const msgpack: WrittenLayout = {
  name: 'msgpack',
  extension: MSGPACK.extension,
  rules: RULES,
  createWriter: (fd, shard, most) => new MsgpackWriter(fd, shard, most),
  samples,
  salvage,
};
