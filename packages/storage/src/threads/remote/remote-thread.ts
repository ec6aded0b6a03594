/** Script of a thread that reads remote files into shared memory: receiving bytes takes CPU time. */
import { parentPort } from 'node:worker_threads';
// Loaded before the first read. A module of a thread must not await at its top: if the thread is terminated while such a
// module begins, V8 of Node 20 aborts the process.
import '../../http/http-storage.js';
import { onRetry } from '../../http/retry.js';
import { openStorage, placeOf } from '../../schemes.js';
import type { Source, Storage, StorageCounts } from '../../storage.js';
import { type Numbered, OPEN_SOURCES, type ReadAnswer, type ReadBytes, type RemoteCall } from '../calls.js';
import { failed } from '../failed.js';

type Request = Numbered<RemoteCall>;

const opened = new Map<string, Promise<Source>>();

onRetry((retry) => post({ kind: 'retry', retry }));

parentPort!.on('message', (requests: readonly Request[]) => {
  for (const request of requests) void answer(request);
});

async function answer(request: Request): Promise<void> {
  const { id } = request;
  try {
    post({ kind: 'done', id, value: await fetched(request), counts: await newCounts(request) });
  } catch (error) {
    post(failed(id, error));
  }
}

async function fetched(request: Request): Promise<ReadBytes> {
  const source = await sourceOf(request);
  const got = await source.readAt(request.offset, request.target);
  return { got, version: source.version };
}

const reported = new Map<Storage, StorageCounts>();

/** Returns the counts since the last answer. */
async function newCounts({ location, options }: Request): Promise<StorageCounts> {
  const storage = await openStorage(placeOf(location).folder, options);
  const before = reported.get(storage) ?? { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  const now = { ...storage.counts };
  reported.set(storage, now);
  return {
    requests: now.requests - before.requests,
    bytes: now.bytes - before.bytes,
    retries: now.retries - before.retries,
    hedges: now.hedges - before.hedges,
  };
}

function sourceOf({ location, expected, options }: Request): Promise<Source> {
  // With other options, such as another endpoint, the same location may be another file.
  const file = JSON.stringify([location, options]);
  const known = opened.get(file);
  if (known !== undefined) {
    opened.delete(file);
    opened.set(file, known);
    return known;
  }
  const { folder, name } = placeOf(location);
  const source = openStorage(folder, options).then((storage) => storage.open(name, expected));
  source.catch(() => opened.delete(file));
  opened.set(file, source);
  for (const [oldest, old] of opened) {
    if (opened.size <= OPEN_SOURCES) break;
    opened.delete(oldest);
    // Reads in progress end before this time.
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

post({ kind: 'ready' });
