// Walks the damaged shards that it receives, one by one. Returns for each the number of samples and the unexpected
// results: another error than a ShardtoolError, an error without a shard, or an offset outside the file.
import { ShardtoolError } from '@shardtool/base';
import { LmdbDatabase, lmdb, msgpack, openSource } from '@shardtool/format';

const layouts = { lmdb, msgpack };

process.once('message', async ({ layout, keys, paths }) => {
  for (const path of paths) process.send({ path, ...(await examine(layouts[layout], keys, path)) });
  process.disconnect();
});

async function examine(layout, keys, path) {
  const source = await openSource(path);
  const guarded = guard(source);
  const outcome = { samples: 0, trouble: null };
  try {
    // Once with short reads and once with large reads. Both must end.
    for (const from of [guarded, { ...guarded, readNow: undefined }]) {
      outcome.samples = await attempt(outcome, path, () => count(layout, from));
    }
    if (layout.name === 'lmdb') await attempt(outcome, path, () => lookUp(guarded, keys));
  } finally {
    await source.close();
  }
  return outcome;
}

async function count(layout, source) {
  let samples = 0;
  for await (const found of layout.samples(source)) {
    samples += found.length;
    const outside = found.find((sample) => !inside(sample, source.size));
    if (outside) throw new Error(`outside: ${JSON.stringify(outside)}`);
  }
  return samples;
}

async function lookUp(source, keys) {
  const database = await LmdbDatabase.open(source);
  for (const key of keys) await database.get(key);
  for await (const entries of database.scan(keys[0])) for (const entry of entries) await database.value(entry);
  return 0;
}

/** Runs a part. Any result except a value or a ShardtoolError about this shard is recorded as trouble. */
async function attempt(outcome, path, part) {
  try {
    return await part();
  } catch (error) {
    const tagged = error instanceof ShardtoolError && error.shard === path && !(error.offset < 0);
    if (!tagged) outcome.trouble ??= String(error.stack);
    return 0;
  }
}

/** A source in which a read outside the file, or memory for such a read, is a fault. */
function guard(source) {
  const checked = (read) => (offset, target) => {
    if (offset >= 0 && offset + target.length <= source.size) return read(offset, target);
    throw new Error(`a read of ${target.length} bytes at ${offset}, in a file of ${source.size}`);
  };
  return { ...source, readAt: checked(source.readAt), readNow: checked(source.readNow) };
}

function inside({ offset, bytes, fields }, size) {
  const within = (from, length) => from >= 0 && length >= 0 && from + length <= size;
  return within(offset, bytes) && fields.every((field) => within(field.offset, field.bytes) && field.offset >= offset);
}
