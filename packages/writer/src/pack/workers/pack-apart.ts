/** Packing in a process of its own, whose pool of threads has room for many calls and which can be left behind. */
import { type ChildProcess, fork } from 'node:child_process';
import { type ErrorRecord, reviveError, WorkerDiedError, warn } from '@shardtool/base';
import * as errors from '../../errors.js';
import type { PackOptions, PackProgress } from '../../options.js';
import { MOST_IN_FLIGHT } from '../../source/ahead/in-flight.js';
import type { PackReport } from '../report.js';

/** What the process is given. */
export interface ApartJob {
  readonly source: string;
  readonly output: string;
  readonly options: Omit<PackOptions, 'onProgress' | 'signal'>;
  readonly tellsProgress: boolean;
}

/** What it is sent later: that it is to end. */
export const STOP = 'stop';

/** What it says: the last is the report or the error. */
export type ApartNews =
  | { readonly type: 'progress'; readonly progress: PackProgress }
  | { readonly type: 'warning'; readonly message: string }
  | { readonly type: 'report'; readonly report: PackReport }
  | { readonly type: 'error'; readonly error: ErrorRecord };

/** libuv's pool has no fewer. */
const LEAST_THREADS = 4;
/** Of what the process says on standard error, for the message where it dies. */
const KEPT_CHARACTERS = 2000;

/**
 * Does what `pack` does in a process of its own. Where it has said how it ended it is not waited for: a call to a file
 * system that hangs cannot be taken back, and neither can its process.
 */
export async function packApart(source: string, output: string, options: PackOptions): Promise<PackReport> {
  const { onProgress, signal, ...rest } = options;
  const threads = Math.max(LEAST_THREADS, options.inFlight ?? MOST_IN_FLIGHT);
  const child = fork(new URL('./pack-process.js', import.meta.url), {
    env: { ...process.env, UV_THREADPOOL_SIZE: String(threads) },
    execArgv: [],
    serialization: 'advanced',
    // A process that hangs must not keep anyone's terminal or pipe.
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

function outcomeOf(child: ChildProcess, onProgress: PackOptions['onProgress']): Promise<PackReport> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-KEPT_CHARACTERS);
  });
  return new Promise((resolve, reject) => {
    child.on('message', (news: ApartNews) => {
      if (news.type === 'progress') {
        try {
          onProgress?.(news.progress);
        } catch {
          // `endingOnProgressError` has the error, and has told the process to stop.
        }
      } else if (news.type === 'warning') warn('SHARDTOOL_PACK', news.message);
      else if (news.type === 'report') resolve(news.report);
      else reject(reviveError(news.error, errors));
    });
    child.on('error', reject);
    child.on('exit', (code, by) => {
      const how = by === null ? `exit code ${code}` : `signal ${by}`;
      const message = `The process that packs ended before its work was done (${how}). ${said.trim()}`.trim();
      reject(new WorkerDiedError({}, message));
    });
  });
}

/** Ends the process, and does not wait for it. */
function leave(child: ChildProcess): void {
  if (child.connected) child.disconnect();
  child.kill('SIGKILL');
  child.stderr?.destroy();
  child.unref();
}
