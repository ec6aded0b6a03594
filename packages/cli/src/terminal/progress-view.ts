import { escapeControls } from '@shardtool/base/text';
import type { SingleBar } from 'cli-progress';
import { type Progress, progressLine } from './progress-line.js';

type Bar = typeof SingleBar;

/** Without a terminal a line is printed this often. */
const LINE_EVERY_MS = 5000;

/** Shows how far some work is: a bar on a terminal, a line now and then elsewhere. Both go to standard error. */
export class ProgressView {
  readonly #Bar: Bar | null;
  #bar: SingleBar | null = null;
  #lastLine = performance.now();

  private constructor(Bar: Bar | null) {
    this.#Bar = Bar;
  }

  /** What draws bars is loaded only where there is a terminal. */
  static async open(): Promise<ProgressView> {
    return new ProgressView(process.stderr.isTTY ? (await import('cli-progress')).SingleBar : null);
  }

  show(progress: Progress): void {
    const { stage, done, total, parts } = progress;
    if (this.#Bar !== null) {
      this.#bar ??= startBar(this.#Bar);
      this.#bar.setTotal(Math.max(1, total));
      this.#bar.update(done, { progress: { ...progress, parts: parts.map((part) => escapeControls(part)) } });
    } else if (performance.now() - this.#lastLine > LINE_EVERY_MS) {
      this.#lastLine = performance.now();
      console.error(`${stage}: ${escapeControls(parts.join(', '))}`);
    }
  }

  /** Takes the bar away; it comes back with the next {@link show}. */
  hide(): void {
    this.#bar?.stop();
    this.#bar = null;
  }
}

/** Plain characters without colours, which any terminal and NO_COLOR allow. */
function startBar(Bar: Bar): SingleBar {
  const bar = new Bar({
    format: (_options, _params, { progress }: { progress?: Progress }) =>
      // The last column stays free for the cursor.
      progress === undefined ? '' : progressLine(progress, (process.stderr.columns ?? 80) - 1),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    // On a terminal without cursor control cli-progress would draw a line each time.
    noTTYOutput: false,
  });
  bar.start(1, 0, {});
  return bar;
}
