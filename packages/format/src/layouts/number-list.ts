/** A list of numbers that grows without boxing them. */
export class NumberList {
  #values = new Float64Array(1024);
  #length = 0;

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length++] = value;
  }

  get length(): number {
    return this.#length;
  }

  toArray(): Float64Array {
    return this.#values.slice(0, this.#length);
  }
}
