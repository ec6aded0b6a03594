import type { PassClock } from '../../decode/passes.js';
import type { Control } from '../ring/control.js';

/** One row of this many is measured: reading the clock takes longer than copying a small row. */
const MEASURED = 8;

/**
 * Measures how the time of a worker is shared between decoding, which includes checking the bytes, and the transform: passes,
 * custom steps and mixing.
 */
export class WorkTime {
  readonly #control: Control;
  readonly #clock: PassClock | null;
  #rows = 0;
  #begun = 0;

  /** `clock`: the clock of the decoder, or null. */
  constructor(control: Control, clock: PassClock | null) {
    this.#control = control;
    this.#clock = clock;
  }

  /** Called when a row begins. */
  begin(): void {
    const clock = this.#clock;
    if (clock === null || this.#rows++ % MEASURED !== 0) return;
    clock.isOn = true;
    clock.ms = 0;
    this.#begun = performance.now();
  }

  /** Called when the row has ended. */
  end(): void {
    const clock = this.#clock;
    if (clock === null || !clock.isOn) return;
    clock.isOn = false;
    const ms = performance.now() - this.#begun;
    // Work on whole batches is always measured, unlike that on rows.
    this.#control.countWork(Math.round((ms - clock.ms) * 1000 * MEASURED), Math.round(clock.ms * 1000 * MEASURED));
  }

  /** Adds the `ms` milliseconds that a whole batch took. */
  addWhole(ms: number): void {
    this.#control.countWork(0, Math.round(ms * 1000));
  }
}
