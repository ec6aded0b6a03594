import type { PackProgress } from '@shardtool/writer';
import type { Progress } from './progress-view.js';
import { countOf, formatCount, formatSize } from './size.js';

/** Puts the progress of writing shards in words, with the rate since the first byte. */
export class WriteRate {
  #since = 0;

  describe({ stage, files, totalFiles, bytes, totalBytes }: PackProgress): Progress {
    if ((stage === 'pack' || stage === 'convert') && this.#since === 0) this.#since = performance.now();
    const noun = stage === 'convert' ? 'sample' : 'file';
    if (totalFiles === 0) return { stage, done: bytes, total: totalBytes, text: countOf(files, noun) };
    const counted = `${formatCount(files)} of ${countOf(totalFiles, noun)}`;
    const bytesPerSecond = this.#since === 0 ? 0 : bytes / ((performance.now() - this.#since) / 1000);
    if (!(bytesPerSecond > 0)) return { stage, done: files, total: totalFiles, text: counted };
    const left = Math.ceil((totalBytes - bytes) / bytesPerSecond);
    const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
    const text = `${counted}, ${formatSize(bytesPerSecond)}/s, ${clock} left`;
    return { stage, done: bytes, total: totalBytes, text };
  }
}
