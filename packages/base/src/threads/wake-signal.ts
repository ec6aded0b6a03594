/**
 * Wakes tasks that wait for a change. A notification that no task awaits is not stored: a task that wakes up checks its condition
 * and waits again. All tasks of a loader share one signal, so that none misses a change.
 */
export class WakeSignal {
  #waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
