/**
 * A thread that reads: remote files, whose bytes cost time to take in, and files of slow file systems, where each call
 * waits. It writes into memory that it shares with whoever asked.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { FileError } from './errors.js';
import { onRetry } from './http/retry.js';
import { openNow, readFileNow, readNow } from './local-calls.js';
import { isRemote } from './location.js';
import { OPEN_SOURCES, type ReadAnswer, type ReadRequest, type ReadValue } from './read-threads.js';
import { openStorage, placeOf, readWhole } from './schemes.js';
import type { Source, Storage, StorageCounts } from './storage.js';

type Fetch = Extract<ReadRequest, { kind: 'fetch' }>;

/** `remote`: what asks servers is loaded before anything is to be read. */
if (workerData === 'remote') await import('./http/http-storage.js');
post({ kind: 'ready' });

const opened = new Map<string, Promise<Source>>();

onRetry((retry) => post({ kind: 'retry', retry }));

parentPort!.on('message', (request: ReadRequest) => {
  if (request.kind === 'end') parentPort!.close();
  else void answer(request);
});

async function answer(request: Exclude<ReadRequest, { kind: 'end' }>): Promise<void> {
  const { id } = request;
  try {
    const value = await answerTo(request);
    post({ kind: 'done', id, value, ...(request.kind === 'fetch' && { counts: await newCounts(request) }) });
  } catch (error) {
    const { name, message, path, offset: at } = error as FileError;
    post({ kind: 'failed', id, name, message, path, offset: at });
  }
}

/** A thread that waits in a call is what it is for: of this machine's files everything is a call. */
function answerTo(request: Exclude<ReadRequest, { kind: 'end' }>): ReadValue | Promise<ReadValue> {
  const { location } = request;
  switch (request.kind) {
    case 'open':
      return openNow(location);
    case 'read':
      return { got: readNow(location, request.file, request.offset, request.target) };
    case 'whole':
      return isRemote(location) ? readWhole(location, request.options) : readFileNow(location);
    case 'fetch':
      return fetched(request);
  }
}

async function fetched(request: Fetch): Promise<ReadValue> {
  const source = await sourceOf(request);
  const got = await source.readAt(request.offset, request.target);
  return { got, version: source.version };
}

const told = new Map<Storage, StorageCounts>();

/** What was counted since the last answer. */
async function newCounts({ location, options }: Fetch): Promise<StorageCounts> {
  const storage = await openStorage(placeOf(location).folder, options);
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

function sourceOf({ location, expected, options }: Fetch): Promise<Source> {
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
    if (opened.size <= OPEN_SOURCES) break;
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
