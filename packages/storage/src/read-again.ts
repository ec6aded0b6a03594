import { compressedByServer } from './http/compression.js';
import { isRemote } from './location/location.js';
import { openSource, WHOLE_BYTES } from './schemes.js';
import type { Source, StorageOptions } from './storage.js';

type ErrorClass = abstract new (...args: never[]) => Error;

/**
 * Calls `read` with a file and returns its result. If the file is remote and `read` throws one of these errors about
 * wrong content, the file is fetched and read once more, because bytes can change in transit. Throws {@link FileError}
 * if the content is wrong because the server compresses it.
 */
export async function readAgainIf<T>(
  kinds: readonly ErrorClass[],
  location: string,
  storage: StorageOptions | undefined,
  read: () => Promise<T>,
): Promise<T> {
  const isWrong = (error: unknown) => isRemote(location) && kinds.some((Kind) => error instanceof Kind);
  try {
    return await read();
  } catch (error) {
    if (!isWrong(error)) throw error;
  }
  try {
    return await read();
  } catch (error) {
    const source = isWrong(error) ? await openAgain(location, storage) : null;
    throw source?.compression === undefined ? error : compressedByServer(source.location, source.compression);
  }
}

/** Opens and closes a file, to see how its server sends it. Null if the file cannot be opened. */
async function openAgain(location: string, storage: StorageOptions | undefined): Promise<Source | null> {
  try {
    const source = await openSource(location, { firstBytes: WHOLE_BYTES }, storage);
    await source.close();
    return source;
  } catch {
    return null;
  }
}
