import { nativeCalls } from '@shardtool/base';

/** posix_fadvise(2), POSIX_FADV_WILLNEED of <fcntl.h> */
const WILL_NEED = 3;
/** Linux serves at most one read-ahead of the mount per call. This is the default read-ahead. */
export const READ_AHEAD_BYTES = 128 << 10;

type Advise = (file: number, offset: number, bytes: number, advice: number) => number;

/** The functions of koffi that are used here. */
interface Koffi {
  load(library: null): { func(name: string, result: string, parameters: readonly string[]): Advise };
}

let advise: Advise | null | undefined;

/**
 * Asks the system to start reading these bytes of an open file, with all requests in parallel. A plain read of a slow
 * file system requests one read-ahead at a time. The call may block if the mount accepts no more requests. It does
 * nothing on systems without posix_fadvise.
 */
export function announce(file: number, offset: number, bytes: number, isOneOfMany: boolean): void {
  // A single short read is requested as a whole anyway.
  if (bytes <= READ_AHEAD_BYTES && !isOneOfMany) return;
  advise ??= adviser();
  for (let at = 0; at < bytes; at += READ_AHEAD_BYTES) {
    // Each call covers the rest of the range, for mounts with a larger read-ahead. Linux does not request bytes twice.
    advise?.(file, offset + at, bytes - at, WILL_NEED);
  }
}

function adviser(): Advise | null {
  if (process.platform !== 'linux') return null;
  try {
    const library = nativeCalls<Koffi>().load(null);
    return library.func('posix_fadvise', 'int', ['int', 'int64_t', 'int64_t', 'int']);
  } catch {
    return null;
  }
}
