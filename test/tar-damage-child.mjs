// Walks the archives whose paths it receives. Returns for each the number of samples and the unexpected results:
// another error than a ShardtoolError, an error without shard and offset, or an offset outside the file.
import { ShardtoolError } from '@shardtool/base';
import { openSource, tar } from '@shardtool/format';

process.once('message', async (paths) => {
  for (const path of paths) process.send({ path, ...(await walk(path)) });
  process.disconnect();
});

async function walk(path) {
  const source = await openSource(path);
  let samples = 0;
  try {
    // Once with short reads and once with large reads. Both must have the same result.
    for (const from of [source, { ...source, readNow: undefined }]) {
      samples = 0;
      for await (const found of tar.samples(from)) {
        samples += found.length;
        const outside = found.find((sample) => !inside(sample, source.size));
        if (outside) return { samples, trouble: `outside: ${JSON.stringify(outside)}` };
      }
    }
    return { samples, trouble: null };
  } catch (error) {
    const isExpected = error instanceof ShardtoolError && error.shard === path && error.offset <= source.size;
    return { samples, trouble: isExpected ? null : String(error.stack) };
  } finally {
    await source.close();
  }
}

function inside({ offset, bytes, fields }, size) {
  const within = (from, length) => from >= 0 && length >= 0 && from + length <= size;
  return within(offset, bytes) && fields.every((field) => within(field.offset, field.bytes) && field.offset >= offset);
}
