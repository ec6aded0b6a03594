import { HashTable, mixedBits } from './hash-table.js';

/**
 * Finds texts in a list by their hashes, in 8 to 16 bytes per text. A Map needs more, and holds at most 2^24 texts. The list must
 * not change.
 */
export class TextRows {
  /** Positions of the first two equal texts; null if all texts differ. */
  readonly repeated: readonly [first: number, second: number] | null = null;
  readonly #texts: readonly string[];
  /** Positions plus one. */
  readonly #rows: HashTable;

  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.#rows = new HashTable(Uint32Array, (entry) => hashOf(texts[entry - 1]!), texts.length);
    for (let row = 0; row < texts.length; row++) {
      const text = texts[row]!;
      const same = this.#rows.place(row + 1, hashOf(text), (entry) => texts[entry - 1] === text);
      if (same !== 0) this.repeated ??= [same - 1, row];
    }
  }

  /** The position of a text, of equal ones the first; undefined if it is not in the list. */
  get(text: string): number | undefined {
    const entry = this.#rows.find(hashOf(text), (one) => this.#texts[one - 1] === text);
    return entry === 0 ? undefined : entry - 1;
  }
}

/** FNV-1a over the code units, with its bits mixed. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mixedBits(hash);
}
