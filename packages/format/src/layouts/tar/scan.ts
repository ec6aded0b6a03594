import type { Source } from '../../source.js';
import { walkFile } from '../walk-file.js';
import { type TarEntry, TarWalk } from './walk.js';

/**
 * Yields the files of an archive in their order, some hundreds at a time, without reading payloads where that is
 * avoidable. Throws DamagedShardError for a header that is not right, TruncatedShardError, UnsupportedEntryError for links and devices,
 * EntryNameError for names that lead out of their folder, FileError.
 */
export function scanEntries(source: Source): AsyncGenerator<readonly TarEntry[]> {
  return walkFile(source, new TarWalk(source.location, source.size));
}
