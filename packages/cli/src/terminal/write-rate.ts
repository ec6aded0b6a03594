import type { PackProgress } from '@shardtool/writer';
import type { Progress } from './progress-line.js';
import { countOf, formatCount, formatSize } from './size.js';

/** Minimum time before a rate is shown, in milliseconds. Earlier rates are too high, because data in memory is written at once. */
const NO_RATE_BEFORE_MS = 1000;

/** Formats the progress of writing shards, with the rate since the first byte. */
export class WriteRate {
  #since: number | null = null;

  describe({ stage, files, totalFiles, bytes, totalBytes }: PackProgress): Progress {
    const now = performance.now();
    if (stage === 'pack' || stage === 'convert') this.#since ??= now;
    const noun = stage === 'convert' ? 'sample' : 'file';
    if (totalFiles === 0) return { stage, done: bytes, total: totalBytes, parts: [countOf(files, noun)] };
    const counted = `${formatCount(files)} of ${countOf(totalFiles, noun)}`;
    const milliseconds = this.#since === null ? 0 : now - this.#since;
    if (milliseconds < NO_RATE_BEFORE_MS || bytes === 0)
      return { stage, done: files, total: totalFiles, parts: [counted] };
    const bytesPerSecond = (bytes / milliseconds) * 1000;
    const left = Math.ceil((totalBytes - bytes) / bytesPerSecond);
    const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
    const parts = [counted, `${formatSize(bytesPerSecond)}/s`, `${clock} left`];
    return { stage, done: bytes, total: totalBytes, parts };
  }
}
