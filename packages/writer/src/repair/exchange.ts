import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { WrittenLayout } from '@shardtool/format';
import { shardPaths } from '../shard/shard-paths.js';

/** The folder below the dataset's that keeps what was taken out, until somebody deletes it. */
export const QUARANTINE_FOLDER = 'quarantine';

/**
 * Puts a shard and its indexes from `work` in the place of those in `folder`. What lay there stays in quarantine as far
 * as it was damaged. The shard comes first: with its old index nothing of it is lost, so that a repair that ends in
 * between can be done again. `isNew` is false where nothing is left of the shard, and nothing comes in its place.
 */
export function exchangeShard(
  folder: string,
  work: string,
  layout: WrittenLayout,
  stem: string,
  { isNew, isFileWhole }: { readonly isNew: boolean; readonly isFileWhole: boolean },
): void {
  const { file, folder: own, index, daliIndex } = shardPaths(layout, stem);
  if (!isFileWhole) keepInQuarantine(folder, file);
  keepInQuarantine(folder, index);
  for (const path of [file, index, daliIndex]) {
    if (isNew && existsSync(join(work, path))) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      renameSync(join(work, path), join(folder, path));
    } else if (!isNew) rmSync(join(folder, path), { force: true });
  }
  if (!isNew && own !== null) rmSync(join(folder, own), { force: true, recursive: true });
}

/** The file stays where it is, and has a second name in quarantine: at no moment is it in neither place. */
function keepInQuarantine(folder: string, file: string): void {
  if (!existsSync(join(folder, file))) return;
  for (let number = 0; ; number++) {
    const kept = join(folder, QUARANTINE_FOLDER, number === 0 ? file : `${number}`, number === 0 ? '' : file);
    if (existsSync(kept)) continue;
    mkdirSync(dirname(kept), { recursive: true });
    try {
      linkSync(join(folder, file), kept);
    } catch {
      // Not every file system has a second name for a file.
      copyFileSync(join(folder, file), kept);
    }
    return;
  }
}
