/** A set of line numbers, one bit each. */
export class LineSet {
  count = 0;
  #bits = new Uint8Array(1 << 16);

  has(line: number): boolean {
    return (((this.#bits[line >>> 3] ?? 0) >> (line & 7)) & 1) === 1;
  }

  add(line: number): void {
    if (this.has(line)) return;
    if (line >>> 3 >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bits.length, (line >>> 3) + 1));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    this.#bits[line >>> 3]! |= 1 << (line & 7);
    this.count++;
  }
}
