/**
 * The rows of one query. They are fetched in pieces when they become visible. The most recently used pieces are kept.
 */
import type { Mark, Query, Row } from '../../src/view/protocol.js';
import { api } from '../api.js';

const PIECE = 200;
const KEPT = 20;

export class RowStore {
  /** Number of samples that the query selects, or null before the first answer. */
  total: number | null = null;
  readonly #query: Query;
  readonly #changed: () => void;
  readonly #failed: (error: Error) => void;
  readonly #abort = new AbortController();
  /** Rows by piece, least recently used first. Null while a piece is being fetched. */
  readonly #pieces = new Map<number, readonly Row[] | null>();

  constructor(query: Query, changed: () => void, failed: (error: Error) => void) {
    this.#query = query;
    this.#changed = changed;
    this.#failed = failed;
  }

  get(place: number): Row | null {
    return this.#pieces.get(Math.floor(place / PIECE))?.[place % PIECE] ?? null;
  }

  /** Fetches the rows of these positions that are missing. */
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

  /** Updates the mark of a sample without fetching its row again. */
  setMark(index: number, mark: Mark | null): void {
    for (const [piece, rows] of this.#pieces) {
      if (!rows?.some((row) => row.index === index)) continue;
      this.#pieces.set(
        piece,
        rows.map((row) => (row.index === index ? { ...row, mark } : row)),
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
