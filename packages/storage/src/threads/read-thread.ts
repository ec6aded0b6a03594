/**
 * A thread that reads: remote files, whose bytes cost time to take in, and files of slow file systems, where each call
 * waits. It writes into memory that it shares with whoever asked.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { FileError } from '../errors.js';
import { onRetry } from '../http/retry.js';
import { openStorage, placeOf, readWhole } from '../schemes.js';
import type { Source, Storage, StorageCounts } from '../storage.js';
import { announce } from './announce.js';
import { openNow, readFileNow, readNow } from './local-calls.js';
import { OPEN_SOURCES, type ReadAnswer, type ReadBytes, type ReadRequest } from './read-threads.js';

type Fetch = Extract<ReadRequest, { kind: 'fetch' }>;
type Remote = Extract<ReadRequest, { kind: 'fetch' | 'whole' }>;
type Local = Extract<ReadRequest, { kind: 'open' | 'read' | 'whole' }>;

/** `remote`: what asks servers is loaded before anything is to be read. */
if (workerData === 'remote') await import('../http/http-storage.js');
post({ kind: 'ready' });

const opened = new Map<string, Promise<Source>>();

onRetry((retry) => post({ kind: 'retry', retry }));

const waiting: ReadRequest[] = [];

parentPort!.on('message', (request: ReadRequest) => {
  hear(request);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    answer(next);
    // What has come meanwhile is on its way before the next call waits.
    for (let more = receiveMessageOnPort(parentPort!); more !== undefined; more = receiveMessageOnPort(parentPort!)) {
      hear(more.message as ReadRequest);
    }
  }
});

function hear(request: ReadRequest): void {
  waiting.push(request);
  if (request.kind === 'read') announce(request.file, request.offset, request.target.length);
}

function answer(request: ReadRequest): void {
  if (request.kind === 'end') parentPort!.close();
  else if (workerData === 'remote') void answerLater(request as Remote);
  else answerNow(request as Local);
}

/** A thread that waits in a call is what it is for: of this machine's files everything is a call. */
function answerNow(request: Local): void {
  const { id, location } = request;
  try {
    const value =
      request.kind === 'open'
        ? openNow(location)
        : request.kind === 'whole'
          ? readFileNow(location)
          : { got: readNow(location, request.file, request.offset, request.target) };
    post({ kind: 'done', id, value });
  } catch (error) {
    fail(id, error);
  }
}

async function answerLater(request: Remote): Promise<void> {
  const { id, location, options } = request;
  try {
    if (request.kind === 'whole') post({ kind: 'done', id, value: await readWhole(location, options) });
    else post({ kind: 'done', id, value: await fetched(request), counts: await newCounts(request) });
  } catch (error) {
    fail(id, error);
  }
}

function fail(id: number, error: unknown): void {
  const { name, message, path, offset } = error as FileError;
  post({ kind: 'failed', id, name, message, path, offset });
}

async function fetched(request: Fetch): Promise<ReadBytes> {
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
