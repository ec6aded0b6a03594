import { visible } from '@shardtool/format/visible';
import type { SingleBar } from 'cli-progress';

type Bar = typeof SingleBar;

/** Without a terminal a line is printed this often. */
const LINE_EVERY_MS = 5000;

/** How far some work is. */
export interface Progress {
  readonly stage: string;
  readonly done: number;
  /** 0 as long as it is not known. */
  readonly total: number;
  /** What is shown beside the bar. */
  readonly text: string;
}

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

  show({ stage, done, total, text }: Progress): void {
    if (this.#Bar !== null) {
      this.#bar ??= startBar(this.#Bar, stage);
      this.#bar.setTotal(Math.max(1, total));
      this.#bar.update(done, { stage, text: visible(text) });
    } else if (performance.now() - this.#lastLine > LINE_EVERY_MS) {
      this.#lastLine = performance.now();
      console.error(`${stage}: ${visible(text)}`);
    }
  }

  /** Takes the bar away; it comes back with the next {@link show}. */
  hide(): void {
    this.#bar?.stop();
    this.#bar = null;
  }
}

/** Plain characters without colours, which any terminal and NO_COLOR allow. */
function startBar(Bar: Bar, stage: string): SingleBar {
  const bar = new Bar({
    format: '{stage} [{bar}] {text}',
    barCompleteChar: '=',
    barIncompleteChar: ' ',
    barsize: 24,
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    // On a terminal without cursor control cli-progress would draw a line each time.
    noTTYOutput: false,
  });
  bar.start(1, 0, { stage, text: '' });
  return bar;
}
