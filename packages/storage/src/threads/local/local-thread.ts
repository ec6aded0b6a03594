/**
 * Script of a thread that reads local files of a slow file system. It blocks in calls and reads into memory that it
 * shares with the thread that asked. There are dozens of these threads, so the script loads almost no code.
 */
import { parentPort } from 'node:worker_threads';
import { END, type LocalCall, type Numbered, type ReadAnswer } from '../calls.js';
import { failed } from '../failed.js';
import { announce } from './announce.js';
import { openNow, readNow } from './local-calls.js';

parentPort!.on('message', (requests: readonly Numbered<LocalCall>[] | typeof END) => {
  if (requests === END) {
    parentPort!.close();
    return;
  }
  // Announce all reads before the first of them blocks.
  for (const request of requests) {
    if (request.kind === 'read') announce(request.file, request.offset, request.target.length, requests.length > 1);
  }
  for (const request of requests) post(answer(request));
});
post({ kind: 'ready' });

function answer(request: Numbered<LocalCall>): ReadAnswer {
  const { id, location } = request;
  try {
    if (request.kind === 'open') return { kind: 'done', id, value: openNow(location) };
    return { kind: 'done', id, value: { got: readNow(location, request.file, request.offset, request.target) } };
  } catch (error) {
    return failed(id, error);
  }
}

function post(answer: ReadAnswer): void {
  parentPort!.postMessage(answer);
}
