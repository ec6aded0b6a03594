/**
 * Node ends the worker threads of a process that exits. One that is loading a native library then aborts the whole
 * process, because N-API cannot throw any more. So a process that exits waits until no worker is loading.
 */
import { getEnvironmentData, isMainThread, setEnvironmentData, type Worker } from 'node:worker_threads';

/** Key of the words that all threads of the process share. */
const KEY = 'shardtool native loading';
/** Number of worker threads that are loading, and 1 if the process is exiting. */
const Word = { loading: 0, exiting: 1 } as const;
/** How long an exit waits at most. Loading takes a few milliseconds. */
const PATIENCE_MS = 2000;

let live = 0;

/** Shares the words with the threads that start from now on. */
export function shareLoading(): void {
  if (getEnvironmentData(KEY) === undefined) setEnvironmentData(KEY, new Int32Array(new SharedArrayBuffer(8)));
}

/** Makes the exit of the process wait while threads load, as long as this thread or another one lives. */
export function waitAtExit(thread: Worker): void {
  if (live++ === 0) process.on('exit', waitForLoading);
  thread.once('exit', () => {
    if (--live === 0) process.off('exit', waitForLoading);
  });
}

function waitForLoading(): void {
  const words = getEnvironmentData(KEY) as Int32Array;
  // A thread of the program that exits ends only its own workers.
  if (isMainThread) Atomics.store(words, Word.exiting, 1);
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const loading = Atomics.load(words, Word.loading);
    const left = until - performance.now();
    if (loading === 0 || left <= 0) return;
    Atomics.wait(words, Word.loading, loading, left);
  }
}

/** Must be called before a thread loads a native library. Returns a function to call afterwards. */
export function beginLoading(): () => void {
  const words = isMainThread ? undefined : (getEnvironmentData(KEY) as Int32Array | undefined);
  if (words === undefined) return () => {};
  const done = () => {
    Atomics.sub(words, Word.loading, 1);
    Atomics.notify(words, Word.loading);
  };
  Atomics.add(words, Word.loading, 1);
  if (Atomics.load(words, Word.exiting) === 1) {
    done();
    // The process ends this thread.
    Atomics.wait(words, Word.exiting, 1);
  }
  return done;
}
