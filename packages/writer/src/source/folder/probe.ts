import { closeSync, opendirSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { READ_NOW } from '../source-file.js';

const PROBED_FILES = 32;
/** Number of folders that are searched for sample files. */
const MOST_FOLDERS = 64;
/** Latency in microseconds for opening and reading a file. Below this, reading one file at a time is fastest. */
const LOCAL_US = 60;
/** Rate of reading cached bytes, in bytes per microsecond. Concurrent calls would not save this time. */
const COPIED_BYTES_PER_US = 3000;
const MOST_BYTES = 1 << 20;

/**
 * True if files below `root` are slow enough that many should be read concurrently. Reads some of the first files that
 * it finds.
 */
export function isSlow(root: string): boolean {
  const content = Buffer.allocUnsafeSlow(MOST_BYTES);
  const waits: number[] = [];
  for (const path of someFiles(root)) {
    const wait = waitFor(path, content);
    if (wait !== null) waits.push(wait);
  }
  waits.sort((a, b) => a - b);
  // The lower median, because a busy machine delays one file, but slow storage delays all.
  return (waits[(waits.length - 1) >> 1] ?? 0) > LOCAL_US;
}

/** Latency in microseconds, without the time for copying from memory; null if the file cannot be read. */
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

/** Yields up to 32 files, a few of each of the first folders. */
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

/** Yields the first entries of a folder, as many as the system returns at once. */
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
    // Unreadable files are reported when they are packed.
  }
}
