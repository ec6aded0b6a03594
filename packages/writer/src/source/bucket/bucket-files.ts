import { FileChangedError, FileNotFoundError, RequestRejectedError } from '@shardtool/base';
import { openStorage, type Source, type Storage, type StorageOptions } from '@shardtool/storage';
import { type ExpectedFile, type FileAccess, PIECE_BYTES } from '../ahead/file-access.js';
import { BadFile, changedFile } from '../source-file.js';
import type { FileFacts } from '../source-files.js';

/** Files of a remote source, each read by one request. `root` ends with "/". */
export function bucketFiles(root: string, how: StorageOptions | undefined): FileAccess {
  const storage = openStorage(root, how);
  // The error is reported to the caller that requests the first file.
  storage.catch(() => undefined);
  return {
    tellsTimes: true,
    measure: (path, done) => {
      measure(storage, path.slice(root.length)).then((facts) => done(null, facts), done);
    },
    read: (path, expected, into, _flight, done) => {
      read(storage, path.slice(root.length), expected, into).then(
        () => done(null),
        (error) => done(asBadFile(path, error)),
      );
    },
    pieces: (path, expected) => pieces(storage, path, path.slice(root.length), expected),
  };
}

async function measure(storage: Promise<Storage>, name: string): Promise<FileFacts> {
  const entry = await (await storage).entry(name);
  return entry === null ? { bytes: -1, mtimeMs: 0 } : { bytes: entry.size, mtimeMs: entry.modifiedMs ?? 0 };
}

async function open(storage: Promise<Storage>, name: string, { bytes, mtimeMs }: ExpectedFile): Promise<Source> {
  return (await storage).open(name, { size: bytes, ...(mtimeMs && { modifiedMs: mtimeMs }) });
}

async function read(storage: Promise<Storage>, name: string, expected: ExpectedFile, into: Uint8Array): Promise<void> {
  await (await open(storage, name, expected)).readAt(0, into.subarray(0, expected.bytes));
}

async function* pieces(
  storage: Promise<Storage>,
  path: string,
  name: string,
  expected: ExpectedFile,
): AsyncGenerator<Uint8Array> {
  try {
    const source = await open(storage, name, expected);
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (let at = 0; at < expected.bytes; at += PIECE_BYTES) {
      const piece = buffer.subarray(0, Math.min(PIECE_BYTES, expected.bytes - at));
      await source.readAt(at, piece);
      yield piece;
    }
  } catch (error) {
    throw asBadFile(path, error as Error);
  }
}

/** Converts an error of the file itself to BadFile; errors of the connection are returned unchanged. */
function asBadFile(path: string, error: Error): Error {
  if (error instanceof FileChangedError) return changedFile(path);
  const isOfFile = error instanceof FileNotFoundError || error instanceof RequestRejectedError;
  return isOfFile ? new BadFile(error.message, { cause: error }) : error;
}
