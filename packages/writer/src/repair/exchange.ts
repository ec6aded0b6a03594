import { existsSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { flushFolder, makeFolder, nameOnce } from '@shardtool/base';
import type { WrittenLayout } from '@shardtool/format';
import { shardPaths } from '../shard/shard-paths.js';

/** Folder below the dataset that keeps what was removed, until the user deletes it. */
export const QUARANTINE_FOLDER = 'quarantine';

/**
 * Replaces a shard and its indexes in `folder` with those in `work`, and keeps the old ones in quarantine. The shard is
 * replaced first: with the old index no data is lost, so that an interrupted repair can be repeated. If nothing is left
 * of the shard, it is only removed.
 */
export async function exchangeShard(
  folder: string,
  work: string,
  layout: WrittenLayout,
  stem: string,
  { isLeft, isFileNew }: { readonly isLeft: boolean; readonly isFileNew: boolean },
): Promise<void> {
  const { file, folder: own, sidecars } = shardPaths(layout, stem);
  if (!isLeft) {
    // The folder of an LMDB shard is moved as a whole, including files of other tools.
    for (const path of [own ?? file, ...sidecars]) {
      if (!existsSync(join(folder, path))) continue;
      const kept = freePlace(folder, path);
      renameSync(join(folder, path), kept);
      await flushUpTo(folder, kept);
    }
    return;
  }
  for (const path of [...(isFileNew ? [file] : []), ...sidecars]) {
    if (!existsSync(join(work, path))) continue;
    await keepInQuarantine(folder, path);
    makeFolder(dirname(join(folder, path)));
    renameSync(join(work, path), join(folder, path));
  }
  await flushFolder(work);
}

/** Flushes all folders from the one of `file` up to `folder`. */
async function flushUpTo(folder: string, file: string): Promise<void> {
  const top = resolve(folder);
  for (let parent = dirname(resolve(file)); ; parent = dirname(parent)) {
    await flushFolder(parent);
    if (parent === top) return;
  }
}

/** Calls `replace` to rewrite a file of the folder. Quarantine keeps the old file, unless the new one is equal. */
export async function keepReplaced(folder: string, file: string, replace: () => Promise<void>): Promise<void> {
  const kept = await keepInQuarantine(folder, file);
  await replace();
  if (kept === null || !readFileSync(kept).equals(readFileSync(join(folder, file)))) return;
  rmSync(kept);
  for (let parent = dirname(kept); parent !== folder; parent = dirname(parent)) {
    if (readdirSync(parent).length > 0) return;
    rmdirSync(parent);
  }
}

/**
 * The file stays where it is, and has a second name in quarantine: at no moment is it in neither place, also if the power
 * fails. Null if there is no such file.
 */
async function keepInQuarantine(folder: string, file: string): Promise<string | null> {
  if (!existsSync(join(folder, file))) return null;
  const kept = freePlace(folder, file);
  await nameOnce(join(folder, file), kept);
  await flushUpTo(folder, kept);
  return kept;
}

/** Returns a free path in quarantine, next to files of earlier repairs. */
function freePlace(folder: string, path: string): string {
  for (let number = 0; ; number++) {
    const place = join(folder, QUARANTINE_FOLDER, number === 0 ? path : `${number}`, number === 0 ? '' : path);
    if (existsSync(place)) continue;
    makeFolder(dirname(place));
    return place;
  }
}
