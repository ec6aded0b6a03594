/** A bell that one task waits for and others ring. A ring that nobody awaits is not remembered. */
export class Signal {
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
