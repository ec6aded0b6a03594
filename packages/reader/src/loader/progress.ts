/** A position in the epochs: samples delivered over all ranks. */
export interface Place {
  readonly epoch: number;
  readonly position: number;
  /** For batches of several sizes: the number of delivered batches, and for each size the number of waiting samples. */
  readonly buckets?: { readonly step: number; readonly waiting: readonly number[] };
}

/**
 * The position of a run. It is used by loaders, by device loaders, which take batches ahead of the consumer, and by the
 * process that serves Python.
 *
 *   begin ─► at a place ──startLoop──► in a loop ──deliver──► in a loop ... ─► at the start of the next epoch
 *               ▲ └──setEpoch──┘
 *
 * A position may be after the last batch of an epoch, if a state was taken there. The next loop then goes through the
 * next epoch. If the old epoch is requested by its number, none of its samples is left, and the loop is empty.
 */
export class Progress {
  readonly #isAhead: boolean;
  /** Position at which the next loop begins. Null before {@link begin}. */
  #next: Place | null = null;
  /** True if no samples of the epoch are left after that position. */
  #isOver = false;
  /** The epoch that was requested for the next loop. */
  #asked: number | null = null;
  /** Positions after the batch that was made last, and after the one that the consumer received last. */
  #taken: Place | null = null;
  #delivered: Place | null = null;

  /** `isAhead`: batches are taken before the consumer gets them. {@link deliver} then reports their delivery. */
  constructor({ isAhead = false } = {}) {
    this.#isAhead = isAhead;
  }

  /** Sets the position at which the run starts, once. `isOver`: it is after the last batch of its epoch. */
  begin(place: Place, isOver: boolean): void {
    if (this.#next !== null) return;
    this.#next = place;
    this.#isOver = isOver;
    if (this.#asked !== null) this.setEpoch(this.#asked);
  }

  /**
   * The next loop goes through this epoch, from its start or from the position of a state in it. If it is not the next
   * epoch anyway, the run is at its start until the next batch is delivered.
   */
  setEpoch(epoch: number): void {
    this.#asked = epoch;
    if (this.#next === null || this.#next.epoch === epoch) return;
    this.#next = { epoch, position: 0 };
    this.#isOver = false;
    this.#delivered = null;
  }

  /** Position at which the next loop begins, possibly after the last batch of that epoch. Null before {@link begin}. */
  get next(): Place | null {
    if (this.#next === null || !this.#isOver || this.#asked === this.#next.epoch) return this.#next;
    return startAfter(this.#next);
  }

  /** Returns the start of the loop that begins now. Null if no samples are left in the requested epoch. */
  startLoop(): Place | null {
    const place = this.next!;
    const isEmpty = this.#isOver && place === this.#next;
    this.#next = isEmpty ? startAfter(place) : place;
    this.#isOver = false;
    this.#asked = null;
    return isEmpty ? null : place;
  }

  /** Records that a batch was made; `place` is the position after it. */
  take(place: Place): void {
    this.#taken = place;
    if (!this.#isAhead) this.deliver(place);
  }

  /**
   * Records that the consumer received a batch. After the last batch of an epoch, the next loop starts the next epoch,
   * however this loop ends.
   */
  deliver(place: Place): void {
    this.#delivered = place;
    this.#next = startAfter(place);
    this.#isOver = false;
  }

  /** Position after the batch that was made last. */
  get taken(): Place | null {
    return this.#taken;
  }

  /**
   * Position after the batch that the consumer received last. Position at which the next loop starts if there was no
   * batch, or if {@link setEpoch} has set another epoch since. Null before {@link begin}.
   */
  get now(): Place | null {
    return this.#delivered ?? this.next;
  }
}

/** Returns the position at which a run starts: that of its state, unless another epoch is requested. */
export function beginOf(epoch: number | undefined, saved: Pick<Place, 'epoch' | 'position'> | null): Place {
  if (saved === null || (epoch !== undefined && epoch !== saved.epoch)) return { epoch: epoch ?? 0, position: 0 };
  return { epoch: saved.epoch, position: saved.position };
}

/** Returns the start of the next epoch. */
export function startAfter({ epoch }: Place): Place {
  return { epoch: epoch + 1, position: 0 };
}
