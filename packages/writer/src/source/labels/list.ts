import { isAbsolute, relative, resolve, sep } from 'node:path';
import { sortByCodePoint } from '@shardtool/base';
import { isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { LabelsError } from '../../errors.js';
import { withoutRepeats } from '../file-table.js';
import { type SourceFiles, sourceFilesOf } from '../source-files.js';
import type { SpoolPlace } from '../spool.js';
import { readLines } from '../text-file.js';

/** Returns the files of a list: paths relative to `source`, or a text file with one path per line. */
export async function listFiles(
  source: string,
  list: string | readonly string[],
  place: SpoolPlace,
  storage?: StorageOptions,
): Promise<SourceFiles> {
  const lines = typeof list === 'string' ? await readLines(list, storage) : list;
  const where = typeof list === 'string' ? shownLocation(list) : null;
  const paths = lines.map((line, i) => pathBelow(source, line, where === null ? 'files' : `${where}:${i + 1}`));
  return sourceFilesOf(withoutRepeats(sortByCodePoint(paths.filter((path) => path !== ''))), place);
}

/** A relative path without ".", "..", empty names and backslashes, which some systems treat as slashes. */
const PLAIN_PATH = /^(?!\.{1,2}(?:\/|$))[^/\\:]+(?:\/(?!\.{1,2}(?:\/|$))[^/\\:]+)*$/;

/** Makes a path of a list relative to `source`. Throws {@link LabelsError} if it is outside of it. */
export function pathBelow(source: string, path: string, where: string): string {
  // Most paths need no change, and lists can have millions of them.
  if (path === '' || PLAIN_PATH.test(path)) return path;
  if (isRemote(source)) return pathInBucket(source, path, where);
  const below = relative(source, resolve(source, path)).split(sep).join('/');
  if (below === '' || below === '..' || below.startsWith('../') || isAbsolute(below)) {
    throw liesElsewhere(source, path, where);
  }
  return below;
}

/** In the names of a bucket "." and ".." have no special meaning. `source` ends with "/". */
function pathInBucket(source: string, path: string, where: string): string {
  const below = path.startsWith(source) ? path.slice(source.length) : path;
  if (below === '' || isRemote(below) || /(^|\/)(\.\.?)?(\/|$)/.test(below)) throw liesElsewhere(source, path, where);
  return below;
}

function liesElsewhere(source: string, path: string, where: string): LabelsError {
  return new LabelsError(
    { path },
    `${where}: ${shownLocation(path)} is not below ${shownLocation(source)}; give a source folder that contains all files.`,
  );
}
