import type { Source } from '../../source.js';
import { codecOfSource } from '../bytes/compressed.js';
import { unpacked } from '../bytes/unpacked.js';
import type { OnSkipped, SamplePosition, WrittenLayout } from '../layout.js';
import { TAR } from './entry.js';
import { SampleGrouper } from './group.js';
import { LinkedTar } from './linked-tar.js';
import { salvage } from './salvage.js';
import { scanEntries } from './scan.js';
import type { TarEntry } from './walk.js';
import { RULES, TarWriter } from './write.js';

export { scanEntries } from './scan.js';
export { type StreamedFile, streamFiles } from './stream.js';

/**
 * Shards as tar archives, one entry per field, named `key.field`. Written as ustar with pax records. Reads every format
 * that GNU tar, Python's tarfile and WebDataset write: v7, ustar, GNU, pax.
 */
export const tar: WrittenLayout = {
  name: 'tar',
  extension: TAR.extension,
  rules: RULES,
  createWriter: (fd, shard, most) => new TarWriter(fd, shard, most),
  samples,
  salvage,
  following: {
    name: 'tar',
    extension: TAR.extension,
    expand: (source) => LinkedTar.open(source),
    samples: (source, onSkipped) => samplesOf(source.location, (source as LinkedTar).entries(onSkipped), onSkipped),
  },
  unpack: async (source) => {
    const codec = await codecOfSource(source);
    return codec === null ? source : unpacked(source, codec);
  },
};

function samples(source: Source, onSkipped?: OnSkipped): AsyncGenerator<readonly SamplePosition[]> {
  return samplesOf(source.location, scanEntries(source), onSkipped);
}

async function* samplesOf(
  shard: string,
  found: AsyncIterable<readonly TarEntry[]> | Iterable<readonly TarEntry[]>,
  onSkipped?: OnSkipped,
): AsyncGenerator<readonly SamplePosition[]> {
  const grouper = new SampleGrouper(shard, onSkipped);
  let complete: SamplePosition[] = [];
  try {
    for await (const entries of found) {
      grouper.push(entries, complete);
      if (complete.length > 0) yield complete;
      complete = [];
    }
    grouper.finish(complete);
  } catch (error) {
    // The samples before the damage are complete.
    if (complete.length > 0) yield complete;
    throw error;
  }
  if (complete.length > 0) yield complete;
}
