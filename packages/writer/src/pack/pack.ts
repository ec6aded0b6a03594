import { checkLocation, checkObject, withMessages } from '@shardtool/base';
import { checkOptions, type PackOptions, type PackSource } from '../options.js';
import { endingOnProgressError } from '../progress.js';
import { givenPack } from './given.js';
import { packOne } from './pack-one.js';
import type { PackReport } from './report.js';
import { packSplits } from './splits.js';

/**
 * Packs the images of `source`, a folder or a remote location, into shards in the folder `output`, and writes
 * dataset.json at the end.
 * The same files, options and seed give the same bytes. An interrupted pack is resumed by the same call. With `part`,
 * many processes pack one dataset, and the one that completes it commits. Throws a {@link ShardtoolError}. Without
 * dataset.json the folder is marked as unfinished.
 */
export async function pack(source: PackSource, output: string, options: PackOptions = {}): Promise<PackReport> {
  checkLocation('pack', output);
  checkObject('pack', options);
  return endingOnProgressError(options, (given) =>
    withMessages(() => {
      const asked = givenPack(source, given);
      const request = { source: asked.source, output, options: checkOptions(asked.options) };
      return request.options.splits ? packSplits(request) : packOne(request);
    }),
  );
}
