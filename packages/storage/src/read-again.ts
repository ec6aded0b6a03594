import { isRemote } from './location/location.js';

type ErrorClass = abstract new (...args: never[]) => Error;

/**
 * What `read` makes of a file. Of a remote file it is asked for once more if that throws one of these errors, which say that its
 * content is wrong: bytes can change on their way.
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
