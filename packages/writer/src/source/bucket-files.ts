import { FileChangedError, NoSuchFileError, openStorage, RefusedError, type Storage } from '@shardtool/storage';
import type { ExpectedFile, FileAccess } from './file-access.js';
import { BadFile, changedFile } from './source-file.js';
import type { FileFacts } from './source-files.js';

/** Files of a remote place, each by one request. `root` ends with "/". */
export function bucketFiles(root: string): FileAccess {
  const storage = openStorage(root);
  // Whoever asks for the first file hears of it.
  storage.catch(() => undefined);
  return {
    tellsTimes: true,
    measure: (path, done) => {
      measure(storage, path.slice(root.length)).then((facts) => done(null, facts), done);
    },
    read: (path, expected, _flight, done) => {
      read(storage, path.slice(root.length), expected).then(
        (content) => done(null, content),
        (error) => done(asBadFile(path, error)),
      );
    },
  };
}

async function measure(storage: Promise<Storage>, name: string): Promise<FileFacts> {
  const entry = await (await storage).entry(name);
  return entry === null ? { bytes: -1, mtimeMs: 0 } : { bytes: entry.size, mtimeMs: entry.modifiedMs ?? 0 };
}

async function read(storage: Promise<Storage>, name: string, { bytes, mtimeMs }: ExpectedFile): Promise<Buffer> {
  const content = Buffer.allocUnsafeSlow(bytes);
  const source = await (await storage).open(name, { size: bytes, ...(mtimeMs && { modifiedMs: mtimeMs }) });
  await source.readAt(0, content);
  return content;
}

/** What is the file's own fault, and not that of the way to it. */
function asBadFile(path: string, error: Error): Error {
  if (error instanceof FileChangedError) return changedFile(path);
  const isOfFile = error instanceof NoSuchFileError || error instanceof RefusedError;
  return isOfFile ? new BadFile(error.message, { cause: error }) : error;
}
