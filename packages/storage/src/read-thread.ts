/**
 * A thread that reads: remote files, whose bytes cost time to take in, and files of slow file systems, where each call
 * waits. It writes into memory that it shares with whoever asked.
 */
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { FileError } from './errors.js';
import { onRetry } from './http/retry.js';
import { isRemote, localPathOf } from './location.js';
import { OPEN_FILES, type ReadAnswer, type ReadRequest } from './read-threads.js';
import { openStorage, placeOf, readWhole } from './schemes.js';
import type { Source, Storage, StorageCounts } from './storage.js';

/** `remote`: what asks servers is loaded before anything is to be read. */
if (workerData === 'remote') await import('./http/http-storage.js');
post({ kind: 'ready' });

const opened = new Map<string, Promise<Source>>();

onRetry((retry) => post({ kind: 'retry', retry }));

parentPort!.on('message', (request: ReadRequest) => {
  void answer(request);
});

async function answer({ id, location, expected, options, offset, target }: ReadRequest): Promise<void> {
  try {
    if (target === null) {
      const whole = isRemote(location) ? await readWhole(location, options) : readFileNow(location);
      post({ kind: 'read', id, got: whole.length, version: undefined, counts: null, whole });
      return;
    }
    const { folder } = placeOf(location);
    const storage = await openStorage(folder, options);
    const source = await sourceOf(location, { expected, options });
    // A thread that waits in a call is what it is for.
    const got = source.readNow === undefined ? await source.readAt(offset, target) : readAllNow(source, offset, target);
    const { version } = source;
    post({ kind: 'read', id, got, version, counts: isRemote(location) ? newCounts(storage) : null });
  } catch (error) {
    const { name, message, path, offset: at } = error as FileError;
    post({ kind: 'failed', id, name, message, path, offset: at });
  }
}

const told = new Map<Storage, StorageCounts>();

/** What was counted since the last answer. */
function newCounts(storage: Storage): StorageCounts {
  const before = told.get(storage) ?? { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  const now = { ...storage.counts };
  told.set(storage, now);
  return {
    requests: now.requests - before.requests,
    bytes: now.bytes - before.bytes,
    retries: now.retries - before.retries,
    hedges: now.hedges - before.hedges,
  };
}

/** One call after the other, as this thread is there for. */
function readFileNow(location: string): Uint8Array {
  const file = localPathOf(location)!;
  try {
    // Not a part of a buffer that others use: it goes to another thread.
    return new Uint8Array(readFileSync(file));
  } catch (cause) {
    throw new FileError({ path: file }, `${file} cannot be read (${(cause as Error).message}).`, { cause });
  }
}

function readAllNow(source: Source, offset: number, target: Uint8Array): number {
  let done = 0;
  while (done < target.length) {
    const got = source.readNow!(offset + done, target.subarray(done));
    if (got === 0) break;
    done += got;
  }
  return done;
}

function sourceOf(location: string, { expected, options }: Pick<ReadRequest, 'expected' | 'options'>): Promise<Source> {
  const known = opened.get(location);
  if (known !== undefined) {
    opened.delete(location);
    opened.set(location, known);
    return known;
  }
  const { folder, name } = placeOf(location);
  const source = openStorage(folder, options).then((storage) => storage.open(name, expected));
  source.catch(() => opened.delete(location));
  opened.set(location, source);
  for (const [oldest, old] of opened) {
    if (opened.size <= OPEN_FILES) break;
    opened.delete(oldest);
    // Reads of it that are under way end first.
    setTimeout(
      () =>
        old.then(
          (source) => source.close(),
          () => {},
        ),
      60_000,
    ).unref();
  }
  return source;
}

function post(answer: ReadAnswer): void {
  parentPort!.postMessage(answer);
}
