import { join } from 'node:path';
import { FileError } from '@shardtool/base';
import { readVersion } from '@shardtool/format';
import { shownLocation } from '@shardtool/storage';
import { hasSize } from '../output/shard-note.js';
import { CHANGE_OPTIONS, type ChangeOptions, changeDataset, changing, commitChange } from './dataset-change.js';
import { updateWidsIndex } from './wids-index.js';

/** Result of restoring a version. */
export interface RestoreReport {
  /** The version that is current now. */
  readonly version: string;
  /** The version that was current before. */
  readonly replaced: string;
  readonly samples: number;
  readonly shards: number;
  readonly bytes: number;
  /** False if that version was current already. */
  readonly isChanged: boolean;
}

/**
 * Makes an earlier version of a dataset the current one. No shard is written or removed, and the version that was current
 * can be restored in turn. Throws OptionError if there is no such version, FileError if a shard of it is gone, and
 * DatasetChangedError if another process changed the dataset in the meantime.
 */
export async function restoreVersion(
  location: string,
  version: string,
  options: ChangeOptions = {},
): Promise<RestoreReport> {
  return changing('restoreVersion', CHANGE_OPTIONS, location, options, () =>
    changeDataset(location, options, async (change) => {
      const { manifest, folder, destination } = change;
      const next = await readVersion(location, version, options.storage);
      const gone = next.shards.find(({ file, bytes }) => !hasSize(join(folder.path, file), bytes));
      if (gone !== undefined) {
        const path = shownLocation(location);
        const message = `${path} cannot be restored to version ${version}: its shard ${gone.file} is gone, or has another size. "shardtool log ${path}" lists the versions.`;
        throw new FileError({ path, shard: gone.file }, message);
      }
      const isChanged = next.identity !== manifest.identity;
      if (isChanged) {
        await updateWidsIndex(change, next, []);
        await destination.sendNotes();
        await commitChange(change, next, 'restore');
      }
      const { identity, samples, shards, bytes } = next;
      return { version: identity, replaced: manifest.identity, samples, shards: shards.length, bytes, isChanged };
    }),
  );
}
