/**
 * The states of a batch slot, in shared memory. A thread that changes the state of a slot wakes the threads that wait
 * for that.
 *
 *   free ──open──► filling ──last finish──► whole ──finishWhole──► ready ──handed out, released──► free
 *                    ▲ │                      │                     │ ▲
 *                    │ └──last finish, if no step works on the batch as a whole─────────┘
 *                    └──────reopen, for bad rows──────────────────┘
 *
 * `filling`: some rows are not finished yet. Each row is finished by one {@link SlotStates.finish}. `whole`: all rows
 * are finished, and the batch as a whole has to be processed. The worker that finished the last row does that. If a
 * worker posted a message about one of the rows, the main thread handles the bad rows first, and then issues a job for
 * the batch. `ready`: nothing is left to do. The main thread has the list of free slots; in this table they stay
 * `ready`.
 */
export type SlotState = 'filling' | 'whole' | 'ready';

/** Words of one slot (Int32). */
const WORD = {
  /** Number of finished rows, and number of rows of the batch. */
  finished: 0,
  rows: 1,
  /** Number of messages that workers have posted about the slot since it was opened. */
  posted: 2,
  /** 1 until the batch has been processed as a whole. */
  whole: 3,
} as const;
/** Slots are a cache line apart, so that workers on different slots do not slow each other down. */
const SLOT_WORDS = 16;

/** Memory for the states of `slots` slots. */
export function slotStateMemory(slots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(slots * SLOT_WORDS * 4);
}

export class SlotStates {
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  state(slot: number): SlotState {
    const at = slot * SLOT_WORDS;
    if (Atomics.load(this.#words, at + WORD.finished) < Atomics.load(this.#words, at + WORD.rows)) return 'filling';
    return Atomics.load(this.#words, at + WORD.whole) === 1 ? 'whole' : 'ready';
  }

  /** Opens the slot for a batch of `rows` rows. With `whole`, the batch is processed as a whole after its rows. */
  open(slot: number, rows: number, whole: boolean): void {
    const at = slot * SLOT_WORDS;
    Atomics.store(this.#words, at + WORD.finished, 0);
    Atomics.store(this.#words, at + WORD.rows, rows);
    Atomics.store(this.#words, at + WORD.posted, 0);
    Atomics.store(this.#words, at + WORD.whole, whole ? 1 : 0);
  }

  /** Marks `rows` rows of a complete batch as unfinished. */
  reopen(slot: number, rows: number): void {
    Atomics.sub(this.#words, slot * SLOT_WORDS + WORD.finished, rows);
  }

  /**
   * Marks a row as finished, whether it was decoded or not. Returns true if the caller has to process the batch as a
   * whole, and then call {@link finishWhole}: this was the last row, and no worker has posted a message about the
   * batch.
   */
  finish(slot: number): boolean {
    const at = slot * SLOT_WORDS;
    const finished = Atomics.add(this.#words, at + WORD.finished, 1) + 1;
    if (finished < Atomics.load(this.#words, at + WORD.rows)) return false;
    const isUntroubled = Atomics.load(this.#words, at + WORD.posted) === 0;
    Atomics.notify(this.#words, at + WORD.finished);
    return isUntroubled && Atomics.load(this.#words, at + WORD.whole) === 1;
  }

  /** Marks a batch as processed as a whole. */
  finishWhole(slot: number): void {
    const at = slot * SLOT_WORDS + WORD.whole;
    Atomics.store(this.#words, at, 0);
    Atomics.notify(this.#words, at);
  }

  /**
   * Resolves when the slot has left this state, or at {@link wake}. The promise by itself does not keep the process
   * alive.
   */
  async whenLeft(slot: number, state: 'filling' | 'whole'): Promise<void> {
    const at = slot * SLOT_WORDS + (state === 'filling' ? WORD.finished : WORD.whole);
    const now = Atomics.load(this.#words, at);
    if (this.state(slot) !== state) return;
    const wait = Atomics.waitAsync(this.#words, at, now);
    if (wait.async) await wait.value;
  }

  /** Ends every {@link whenLeft}. */
  wake(): void {
    for (let at = 0; at < this.#words.length; at += SLOT_WORDS) {
      Atomics.notify(this.#words, at + WORD.finished);
      Atomics.notify(this.#words, at + WORD.whole);
    }
  }

  rows(slot: number): number {
    return Atomics.load(this.#words, slot * SLOT_WORDS + WORD.rows);
  }

  finished(slot: number): number {
    return Atomics.load(this.#words, slot * SLOT_WORDS + WORD.finished);
  }

  /** Number of messages that workers have posted about this slot since it was opened. That many will arrive. */
  posted(slot: number): number {
    return Atomics.load(this.#words, slot * SLOT_WORDS + WORD.posted);
  }

  /** Call this right before a message about this slot is posted. */
  countPosted(slot: number): void {
    Atomics.add(this.#words, slot * SLOT_WORDS + WORD.posted, 1);
  }
}
