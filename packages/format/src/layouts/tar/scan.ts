import type { Source } from '../../source.js';
import { compressedWhole, compressionOfSource } from '../bytes/compressed.js';
import { walkFile } from '../walk-file.js';
import { type TarEntry, TarWalk } from './walk.js';

/**
 * Yields the files of an archive in order, some hundreds at a time, without reading payloads if that is avoidable.
 * Throws DamagedShardError for an invalid header, TruncatedShardError, UnsupportedEntryError for devices,
 * UnsupportedShardError for a compressed archive, EntryNameError for names that lead out of their folder, and
 * FileError.
 */
export async function* scanEntries(source: Source): AsyncGenerator<readonly TarEntry[]> {
  let isBegun = false;
  try {
    const walk = new TarWalk(source.location, source.size);
    for await (const entries of walkFile(source, walk)) {
      isBegun = true;
      yield entries;
    }
  } catch (error) {
    const compression = isBegun ? null : await compressionOfSource(source);
    throw compression === null ? error : compressedWhole(source.location, compression);
  }
}
