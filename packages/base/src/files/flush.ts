import { fdatasync, fsync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** Flushes an open file to the disk. By its descriptor, because files that Yarn's Plug'n'Play opens have no `sync`. */
export function flushFile({ fd }: Pick<FileHandle, 'fd'>): Promise<void> {
  return new Promise((done, failed) => fsync(fd, (error) => (error ? failed(error) : done())));
}

/** Like {@link flushFile}, but leaves out what is unnecessary for reading the file, such as its times. */
export function flushData({ fd }: Pick<FileHandle, 'fd'>): Promise<void> {
  return new Promise((done, failed) => fdatasync(fd, (error) => (error ? failed(error) : done())));
}
