import { closeSync, opendirSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { READ_NOW } from '../source-file.js';

const PROBED_FILES = 32;
/** So many folders are looked into for them. */
const MOST_FOLDERS = 64;
/** Microseconds that a file may wait, open and read together: where it is less, one after the other is the quickest way. */
const LOCAL_US = 60;
/** What reading costs where the bytes lie in memory, in bytes a microsecond: time that no second call would save. */
const COPIED_BYTES_PER_US = 3000;
const MOST_BYTES = 1 << 20;

/** Whether files below `root` come so late that many should be asked for at a time. Reads some of the first that it meets. */
export function isSlow(root: string): boolean {
  const content = Buffer.allocUnsafeSlow(MOST_BYTES);
  const waits: number[] = [];
  for (const path of someFiles(root)) {
    const wait = waitFor(path, content);
    if (wait !== null) waits.push(wait);
  }
  waits.sort((a, b) => a - b);
  // Of two the shorter: a busy machine holds up one of them, slow storage both.
  return (waits[(waits.length - 1) >> 1] ?? 0) > LOCAL_US;
}

/** Microseconds, less those that reading takes from memory; null where the file cannot be read. */
function waitFor(path: string, content: Buffer): number | null {
  const began = performance.now();
  try {
    const fd = openSync(path, READ_NOW);
    try {
      const bytes = readSync(fd, content, 0, content.length, 0);
      return (performance.now() - began) * 1000 - bytes / COPIED_BYTES_PER_US;
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}

/** Up to 32 files, a few of each of the first folders. */
function* someFiles(root: string): Generator<string> {
  const folders = [root];
  let files = 0;
  for (let seen = 0; seen < MOST_FOLDERS && folders.length > 0 && files < PROBED_FILES; seen++) {
    const folder = folders.shift()!;
    let ofThis = 0;
    for (const entry of entriesOf(folder)) {
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory() && folders.length < MOST_FOLDERS) folders.push(join(folder, entry.name));
      if (!entry.isFile() || ofThis === PROBED_FILES / 4 || files === PROBED_FILES) continue;
      ofThis++;
      files++;
      yield join(folder, entry.name);
    }
  }
}

/** The first entries of a folder, as many as the system gives at once. */
function* entriesOf(path: string) {
  try {
    const folder = opendirSync(path, { bufferSize: MOST_FOLDERS });
    try {
      for (let i = 0; i < MOST_FOLDERS; i++) {
        const entry = folder.readSync();
        if (entry === null) return;
        yield entry;
      }
    } finally {
      folder.closeSync();
    }
  } catch {
    // What cannot be read is met where it is packed.
  }
}
