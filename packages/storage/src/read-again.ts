import { isRemote } from './location/location.js';

type ErrorClass = abstract new (...args: never[]) => Error;

/**
 * Calls `read` with a file and returns its result. If the file is remote and `read` throws one of these errors about
 * wrong content, the file is fetched and read once more, because bytes can change in transit.
 */
export async function readAgainIf<T>(
  kinds: readonly ErrorClass[],
  location: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isRemote(location) || !kinds.some((Kind) => error instanceof Kind)) throw error;
    return read();
  }
}
