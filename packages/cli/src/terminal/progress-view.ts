import { escapeControls } from '@shardtool/base/text';
import type { SingleBar } from 'cli-progress';
import { isJsonLog, log } from './log.js';
import { type Progress, progressLine } from './progress-line.js';

type Bar = typeof SingleBar;

/** Without a terminal a line is printed this often. */
const LINE_EVERY_MS = 5000;

/** Shows progress on standard error: a bar on a terminal, elsewhere a line with the time every few seconds. */
export class ProgressView {
  readonly #Bar: Bar | null;
  #bar: SingleBar | null = null;
  #lastLine = performance.now();

  private constructor(Bar: Bar | null) {
    this.#Bar = Bar;
  }

  /** The code that draws bars is loaded only if there is a terminal. */
  static async open(): Promise<ProgressView> {
    const hasBar = process.stderr.isTTY && !isJsonLog();
    return new ProgressView(hasBar ? (await import('cli-progress')).SingleBar : null);
  }

  show(progress: Progress): void {
    const { stage, done, total, parts } = progress;
    if (this.#Bar !== null) {
      this.#bar ??= startBar(this.#Bar);
      this.#bar.setTotal(Math.max(1, total));
      this.#bar.update(done, { progress: { ...progress, parts: parts.map((part) => escapeControls(part)) } });
    } else if (performance.now() - this.#lastLine > LINE_EVERY_MS) {
      this.#lastLine = performance.now();
      log('info', `${stage}: ${escapeControls(parts.join(', '))}`, { event: 'progress', stage, done, total }, true);
    }
  }

  /** Hides the bar until the next {@link show}. */
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
    // On a terminal without cursor control, cli-progress would print a new line each time.
    noTTYOutput: false,
  });
  bar.start(1, 0, {});
  return bar;
}
