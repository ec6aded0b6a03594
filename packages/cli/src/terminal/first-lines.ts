import { print } from './outcome.js';
import { formatCount } from './size.js';

/** Number of lines of a list that are printed without --verbose. */
const SHOWN = 20;

/** Prints the first lines of a list at once, and counts the rest. */
export class FirstLines {
  readonly #limit: number;
  #lines = 0;

  /** `isAll`: print all lines. */
  constructor(isAll: boolean) {
    this.#limit = isAll ? Number.POSITIVE_INFINITY : SHOWN;
  }

  add(line: string): void {
    this.#lines += 1;
    if (this.#lines <= this.#limit) void print(line);
  }

  /** A line with the number of omitted lines. No line if all were printed. */
  rest(): string[] {
    const left = this.#lines - this.#limit;
    return left > 0 ? [`... and ${formatCount(left)} more; --verbose prints all, --json as JSON`] : [];
  }
}
