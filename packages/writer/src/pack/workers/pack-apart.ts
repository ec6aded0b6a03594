/** Packs in a separate process, whose thread pool has room for many calls, and which can be abandoned. */
import { type ChildProcess, fork } from 'node:child_process';
import { type ErrorRecord, reviveError, WorkerDiedError, warn } from '@shardtool/base';
import * as errors from '../../errors.js';
import type { CheckedOptions, PackProgress } from '../../options.js';
import { MOST_IN_FLIGHT } from '../../source/ahead/in-flight.js';
import type { PackRequest } from '../pack-one.js';
import type { PackReport } from '../report.js';

/** Input of the process. */
export interface ApartJob {
  readonly source: string;
  readonly output: string;
  readonly options: Omit<CheckedOptions, 'onProgress' | 'signal'>;
  readonly tellsProgress: boolean;
}

/** Message to the process that asks it to stop. */
export const STOP = 'stop';

/** Messages from the process: the last one is the report or the error. */
export type ApartNews =
  | { readonly type: 'progress'; readonly progress: PackProgress }
  | { readonly type: 'warning'; readonly message: string }
  | { readonly type: 'report'; readonly report: PackReport }
  | { readonly type: 'error'; readonly error: ErrorRecord };

/** libuv's pool has at least this many threads. */
const LEAST_THREADS = 4;
/** Number of characters of the process's standard error that are kept for an error message. */
const KEPT_CHARACTERS = 2000;

/**
 * Runs `pack` in a separate process. After its final message the process is not waited for: a hanging call to a file
 * system cannot be cancelled, nor can its process be ended.
 */
export async function packApart({ source, output, options }: PackRequest): Promise<PackReport> {
  const { onProgress, signal, ...rest } = options;
  const threads = Math.max(LEAST_THREADS, options.inFlight ?? MOST_IN_FLIGHT);
  const child = fork(new URL('./pack-process.js', import.meta.url), {
    env: { ...process.env, UV_THREADPOOL_SIZE: String(threads) },
    execArgv: [],
    serialization: 'advanced',
    // A hanging process must not keep a terminal or pipe open.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const stop = () => child.connected && child.send(STOP);
  signal?.addEventListener('abort', stop);
  try {
    const job: ApartJob = { source, output, options: rest, tellsProgress: onProgress !== undefined };
    child.send(job);
    return await outcomeOf(child, onProgress);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    leave(child);
  }
}

function outcomeOf(child: ChildProcess, onProgress: CheckedOptions['onProgress']): Promise<PackReport> {
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-KEPT_CHARACTERS);
  });
  return new Promise((resolve, reject) => {
    child.on('message', (news: ApartNews) => {
      if (news.type === 'progress') {
        try {
          onProgress?.(news.progress);
        } catch {
          // `endingOnProgressError` records the error, and has asked the process to stop.
        }
      } else if (news.type === 'warning') warn('SHARDTOOL_PACK', news.message);
      else if (news.type === 'report') resolve(news.report);
      else reject(reviveError(news.error, errors));
    });
    child.on('error', reject);
    child.on('exit', (code, by) => {
      const how = by === null ? `exit code ${code}` : `signal ${by}`;
      const message = `The process that packs ended before its work was done (${how}). ${output.trim()}`.trim();
      reject(new WorkerDiedError({}, message));
    });
  });
}

/** Asks the process to end, and does not wait for it. */
function leave(child: ChildProcess): void {
  if (child.connected) child.disconnect();
  child.kill('SIGKILL');
  child.stderr?.destroy();
  child.unref();
}
