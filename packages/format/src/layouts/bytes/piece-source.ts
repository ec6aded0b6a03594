import { inLanes, LruCache } from '@shardtool/base';
import type { Source } from '../../source.js';
import { partAt } from './part-at.js';

/** The view of a shard whose payloads are not stored plainly. */
export interface Pieces {
  /** The start of each piece in the view, ascending, and the end of the view: one more than the number of pieces. */
  readonly starts: Float64Array;
  /** Loads the bytes of one piece, of exactly its length. */
  load(piece: number): Promise<Uint8Array>;
}

/** Pieces are cached up to this size, at least one: neighbouring samples are read one after the other. */
const KEPT_BYTES = 32 << 20;
interface KeptPiece {
  readonly size: number;
  readonly loaded: Promise<Uint8Array>;
}

/** How many pieces of one read are loaded concurrently. */
const LOADS_AT_ONCE = 8;

/**
 * A view of a shard that consists of pieces, each loaded (read, decompressed) on demand: the stage between a shard and
 * the arena for layouts whose payloads are deflated or encoded in pages. Owns `source`.
 */
export class PieceSource implements Source {
  readonly location: string;
  readonly size: number;
  readonly #source: Source;
  readonly #pieces: Pieces;
  readonly #kept = new LruCache<number, KeptPiece>(KEPT_BYTES, undefined, ({ size }) => size);

  constructor(source: Source, pieces: Pieces) {
    this.location = source.location;
    this.size = pieces.starts.at(-1)!;
    this.#source = source;
    this.#pieces = pieces;
  }

  async readAt(offset: number, target: Uint8Array): Promise<number> {
    const { starts } = this.#pieces;
    const end = Math.min(offset + target.length, this.size);
    if (offset >= end) return 0;
    const wanted: number[] = [];
    for (let piece = partAt(starts, offset); starts[piece]! < end; piece++) wanted.push(piece);
    await inLanes(wanted, LOADS_AT_ONCE, async (piece) => {
      const bytes = await this.#piece(piece);
      const from = Math.max(offset, starts[piece]!);
      const to = Math.min(end, starts[piece + 1]!);
      target.set(bytes.subarray(from - starts[piece]!, to - starts[piece]!), from - offset);
    });
    return end - offset;
  }

  close(): Promise<void> {
    this.#kept.clear();
    return this.#source.close();
  }

  #piece(piece: number): Promise<Uint8Array> {
    const known = this.#kept.get(piece);
    if (known !== undefined) return known.loaded;
    const { starts } = this.#pieces;
    const loaded = this.#pieces.load(piece);
    this.#kept.set(piece, { size: starts[piece + 1]! - starts[piece]!, loaded });
    loaded.catch(() => this.#kept.delete(piece));
    return loaded;
  }
}
