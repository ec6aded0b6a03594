/**
 * A bell that tasks wait for and others ring. A ring that nobody awaits is not remembered: whoever is woken looks at what
 * it needs and waits again. One bell serves all tasks of a loader, so that nobody misses a change it did not think of.
 */
export class WakeSignal {
  #waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
