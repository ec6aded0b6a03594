import { existsSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { flushFolder, makeFolder, nameOnce } from '@shardtool/base';
import type { WrittenLayout } from '@shardtool/format';
import { shardPaths } from '../shard/shard-paths.js';

/** The folder below the dataset's that keeps what was taken out, until somebody deletes it. */
export const QUARANTINE_FOLDER = 'quarantine';

/**
 * Puts what `work` has of a shard and its indexes in the place of what is in `folder`, which quarantine keeps. The shard
 * comes first: with its old index nothing of it is lost, so that a repair that ends in between can be done again. Where
 * nothing is left of the shard, nothing comes in its place.
 */
export async function exchangeShard(
  folder: string,
  work: string,
  layout: WrittenLayout,
  stem: string,
  { isLeft, isFileNew }: { readonly isLeft: boolean; readonly isFileNew: boolean },
): Promise<void> {
  const { file, folder: own, beside } = shardPaths(layout, stem);
  if (!isLeft) {
    // The folder of an LMDB shard goes as a whole, with what other software has put into it.
    for (const path of [own ?? file, ...beside]) {
      if (!existsSync(join(folder, path))) continue;
      const kept = freePlace(folder, path);
      renameSync(join(folder, path), kept);
      await flushUpTo(folder, kept);
    }
    return;
  }
  for (const path of [...(isFileNew ? [file] : []), ...beside]) {
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

/**
 * Has `replace` write a file of the folder anew. Quarantine keeps what was there, unless the new one is the same.
 */
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

/** Where a file or folder can lie in quarantine beside what earlier repairs have put there. */
function freePlace(folder: string, path: string): string {
  for (let number = 0; ; number++) {
    const place = join(folder, QUARANTINE_FOLDER, number === 0 ? path : `${number}`, number === 0 ? '' : path);
    if (existsSync(place)) continue;
    makeFolder(dirname(place));
    return place;
  }
}
