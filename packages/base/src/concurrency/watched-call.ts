import { withMessages } from '../system-error.js';
import { abortable } from './abortable.js';
import { WatchedCallbacks } from './watched-callbacks.js';

/** Options of every call: how to follow it, and how to stop it. */
interface RunOptions<Progress> {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/**
 * Runs the work of a public call, and rejects as soon as `signal` aborts, with its reason, or with the error of
 * `onProgress`. The function that `work` receives reports progress; it throws if the call has ended, so that the work
 * ends, too. Errors of the system become FileErrors with a sentence.
 */
export function watchedCall<Progress, Result>(
  { signal, onProgress }: RunOptions<Progress>,
  work: (report: (progress: Progress) => void) => Promise<Result>,
): Promise<Result> {
  const callbacks = new WatchedCallbacks();
  const report = callbacks.wrap(onProgress ?? (() => undefined))!;
  return abortable(signal, () => callbacks.watch(() => withMessages(() => work(report)), signal));
}
