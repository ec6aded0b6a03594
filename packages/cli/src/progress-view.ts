import type { PackProgress } from '@shardtool/writer';
import { Presets, SingleBar } from 'cli-progress';
import { formatCount, formatSize } from './size.js';

/** Without a terminal a line is printed this often. */
const LINE_EVERY_MS = 5000;

/** How far a pack is: a bar on a terminal, plain lines elsewhere. Both go to standard error. */
export class ProgressView {
  #bar: SingleBar | null = null;
  #packingSince = 0;
  #lastLine = performance.now();

  show(progress: PackProgress): void {
    if (progress.stage === 'pack' && this.#packingSince === 0) this.#packingSince = performance.now();
    if (process.stderr.isTTY) this.#draw(progress);
    else if (performance.now() - this.#lastLine > LINE_EVERY_MS) {
      this.#lastLine = performance.now();
      console.error(`${progress.stage}: ${describe(progress, this.#rate(progress))}`);
    }
  }

  end(): void {
    this.#bar?.stop();
    this.#bar = null;
  }

  #draw(progress: PackProgress): void {
    const total = Math.max(1, progress.totalBytes);
    if (this.#bar === null) {
      const format = process.env.NO_COLOR ? Presets.legacy : Presets.shades_classic;
      this.#bar = new SingleBar({ format: '{stage} [{bar}] {text}', stream: process.stderr, hideCursor: true, clearOnComplete: true }, format);
      this.#bar.start(total, 0, { stage: progress.stage, text: '' });
    }
    this.#bar.setTotal(total);
    this.#bar.update(progress.bytes, { stage: progress.stage, text: describe(progress, this.#rate(progress)) });
  }

  /** Bytes a second since packing began. */
  #rate(progress: PackProgress): number {
    if (this.#packingSince === 0) return 0;
    return (progress.bytes / Math.max(1, performance.now() - this.#packingSince)) * 1000;
  }
}

function describe({ files, totalFiles, bytes, totalBytes }: PackProgress, bytesPerSecond: number): string {
  if (totalFiles === 0) return `${formatCount(files)} files`;
  const counted = `${formatCount(files)} of ${formatCount(totalFiles)} files`;
  if (bytesPerSecond === 0) return counted;
  const left = Math.ceil((totalBytes - bytes) / bytesPerSecond);
  return `${counted}, ${formatSize(bytesPerSecond)}/s, ${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')} left`;
}
