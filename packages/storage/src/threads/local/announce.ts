import { nativeCalls } from '@shardtool/base';

/** posix_fadvise(2), POSIX_FADV_WILLNEED of <fcntl.h> */
const WILL_NEED = 3;
/** Linux takes no more of one such call than a mount's read-ahead, which is so much where nobody has set it. */
export const READ_AHEAD_BYTES = 128 << 10;

type Advise = (file: number, offset: number, bytes: number, advice: number) => number;

/** What is used of koffi. */
interface Koffi {
  load(library: null): { func(name: string, result: string, parameters: readonly string[]): Advise };
}

let advise: Advise | null | undefined;

/**
 * Has the system begin to read these bytes of an open file, all side by side: a read alone asks a slow file system for one
 * read-ahead after the other. May wait, where the mount takes no more requests. Does nothing where the system cannot.
 */
export function announce(file: number, offset: number, bytes: number, isOneOfMany: boolean): void {
  // A short read alone is asked for at once anyway.
  if (bytes <= READ_AHEAD_BYTES && !isOneOfMany) return;
  advise ??= adviser();
  for (let at = 0; at < bytes; at += READ_AHEAD_BYTES) {
    // Of the rest, for mounts that take more at once: what is on its way already is not asked for again.
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
