/** Wakes everyone who waits. */
export class Bell {
  #waiting: (() => void)[] = [];

  ring(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
