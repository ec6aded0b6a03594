/** The rows of one query, fetched a piece at a time where they show; the pieces that were used last stay. */
import type { Mark, Query, Row } from '../../src/view/protocol.js';
import { api } from '../api.js';

const PIECE = 200;
const KEPT = 20;

export class RowStore {
  /** How many samples the query selects; null before the first answer. */
  total: number | null = null;
  readonly #query: Query;
  readonly #changed: () => void;
  readonly #failed: (error: Error) => void;
  readonly #abort = new AbortController();
  /** By number of piece, the least recently used first; null while it is on its way. */
  readonly #pieces = new Map<number, readonly Row[] | null>();

  constructor(query: Query, changed: () => void, failed: (error: Error) => void) {
    this.#query = query;
    this.#changed = changed;
    this.#failed = failed;
  }

  get(place: number): Row | null {
    return this.#pieces.get(Math.floor(place / PIECE))?.[place % PIECE] ?? null;
  }

  /** Has the rows of these places fetched, as far as they are not there. */
  want(from: number, to: number): void {
    const end = this.total === null ? to : Math.min(to, this.total);
    for (let piece = Math.floor(from / PIECE); piece * PIECE < Math.max(end, 1); piece++) {
      const rows = this.#pieces.get(piece);
      if (rows === undefined) this.#fetch(piece);
      else {
        this.#pieces.delete(piece);
        this.#pieces.set(piece, rows);
      }
    }
    for (const piece of this.#pieces.keys()) {
      if (this.#pieces.size <= KEPT) return;
      this.#pieces.delete(piece);
    }
  }

  /** What is marked now, without asking for the rows again. */
  setMark(number: number, mark: Mark | null): void {
    for (const [piece, rows] of this.#pieces) {
      if (!rows?.some((row) => row.number === number)) continue;
      this.#pieces.set(
        piece,
        rows.map((row) => (row.number === number ? { ...row, mark } : row)),
      );
    }
    this.#changed();
  }

  close(): void {
    this.#abort.abort();
  }

  #fetch(piece: number): void {
    this.#pieces.set(piece, null);
    api.rows(this.#query, piece * PIECE, PIECE, this.#abort.signal).then(
      ({ total, rows }) => {
        this.total = total;
        if (this.#pieces.has(piece)) this.#pieces.set(piece, rows);
        this.#changed();
      },
      (error: Error) => {
        this.#pieces.delete(piece);
        if (!this.#abort.signal.aborted) this.#failed(error);
      },
    );
  }
}
