import { close, fstat, open, read, type Stats } from 'node:fs';
import { type Done, type ExpectedFile, type FileAccess, measureFile, PIECE_BYTES } from '../ahead/file-access.js';
import type { InFlight } from '../ahead/in-flight.js';
import { changedFile, checkIsFile, isSystemLimit, READ_NOW, unreadableFile } from '../source-file.js';

const MAX_READ_BYTES = 1 << 30;
/** Delay in ms before opening is tried again, when another file may have been closed. */
const OPEN_AGAIN_MS = 5;

/** Files below a folder. */
export const FOLDER_FILES: FileAccess = { tellsTimes: false, measure: measureFile, read: readFile, pieces };

/**
 * Opens, reads and closes a file. Problems with the file are a {@link BadFile}, as when files are read one at a time.
 */
function readFile(path: string, expected: ExpectedFile, into: Buffer, flight: InFlight, done: Done<undefined>): void {
  open(path, READ_NOW, (error, fd) => {
    if (error !== null) {
      if (!isSystemLimit(error) || flight.live <= 1) return done(unreadableFile(path, error));
      flight.tooMany();
      setTimeout(() => readFile(path, expected, into, flight, done), OPEN_AGAIN_MS);
      return;
    }
    const end = (failure: Error | null) => {
      // The result of closing does not matter.
      close(fd, () => undefined);
      done(failure);
    };
    const { bytes, mtimeMs } = expected;
    if (mtimeMs === null && bytes > 0) return readOpen(path, fd, bytes, into, end);
    fstat(fd, (failure: Error | null, stat: Stats) => {
      if (failure !== null) return end(unreadableFile(path, failure));
      try {
        if (bytes <= 0) checkIsFile(path, stat);
      } catch (error) {
        return end(error as Error);
      }
      if (mtimeMs !== null && stat.mtimeMs !== mtimeMs) end(changedFile(path));
      else readOpen(path, fd, bytes, into, end);
    });
  });
}

/** Requests one byte more, so that the same read detects a file that has grown. */
function readOpen(path: string, fd: number, bytes: number, into: Buffer, end: (error: Error | null) => void): void {
  const readOn = (at: number): void => {
    const asked = Math.min(bytes + 1 - at, MAX_READ_BYTES);
    read(fd, into, at, asked, null, (error, got) => {
      if (error !== null) return end(unreadableFile(path, error));
      const isAll = got === 0 || (got < asked && at + got === bytes);
      if (!isAll && at + got <= bytes) return readOn(at + got);
      if (at + got === bytes) end(null);
      else end(changedFile(path));
    });
  };
  readOn(0);
}

async function* pieces(path: string, { bytes, mtimeMs }: ExpectedFile, flight: InFlight): AsyncGenerator<Uint8Array> {
  const call = <Value>(begin: (done: Done<Value>) => void) =>
    flight.run<Value>(path, begin).catch((error: Error) => {
      throw 'syscall' in error ? unreadableFile(path, error) : error;
    });
  const fd = await call<number>((done) => open(path, READ_NOW, done));
  try {
    const stat = await call<Stats>((done) => fstat(fd, done));
    if (mtimeMs !== null && stat.mtimeMs !== mtimeMs) throw changedFile(path);
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (let at = 0; ; ) {
      const got = await call<number>((done) => read(fd, buffer, 0, PIECE_BYTES, at, done));
      at += got;
      if (got === 0 && at === bytes) return;
      if (got === 0 || at > bytes) throw changedFile(path);
      yield buffer.subarray(0, got);
    }
  } finally {
    // The result of closing does not matter.
    close(fd, () => undefined);
  }
}
