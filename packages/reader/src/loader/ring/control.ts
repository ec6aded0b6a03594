/**
 * The shared memory through which the main thread and the decode workers talk: control words, and a ring of jobs. A job
 * is a few numbers, never a message, so that a sample costs the main thread well under a microsecond.
 *
 * One writer, many takers. The main thread writes job `tail`, then publishes it by raising TAIL. A worker reads job
 * `head` first and then takes it by raising HEAD with compareExchange; since the main thread overwrites a place only
 * when HEAD has passed it, a job whose compareExchange succeeded was read whole.
 */

/** Control words before the slots' (Int32). TAIL and HEAD wrap around at 2^32; their difference does not. */
const TAIL = 0;
const HEAD = 1;
/** Raised whenever a sleeping worker should look again. */
const BELL = 2;
const STOP = 3;
/** Decoder warnings (images that were decoded although something in them was odd), over all workers. */
const WARNINGS = 4;
const SLOT_WORDS = 16;
/** Words of one slot, from SLOT_WORDS + slot * SLOT_STRIDE. */
const DONE = 0;
const WANTED = 1;
const POSTED = 2;
/** What is still to be done to the batch as a whole: {@link WHOLE_PENDING} or nothing. */
const WHOLE = 3;
const WHOLE_PENDING = 1;
const SLOT_STRIDE = 16;

const JOB_BYTES = 64;

/** What a worker needs to know to decode one sample into one row. */
export interface Job {
  /** The shard whose file the encoded image is read from; -1 where it is in the arena. */
  shard: number;
  /** Place of the encoded image in the shard or in the arena, and its length in bytes. */
  offset: number;
  bytes: number;
  /** The sample's number in the dataset: with seed and epoch the origin of its random numbers. */
  number: number;
  epoch: number;
  /** 0, or higher where the same sample comes more than once in an epoch. */
  occurrence: number;
  slot: number;
  row: number;
  /** EXIF orientation 1..8. */
  orientation: number;
  /** Expected crc32 of the encoded image, or -1 not to check. */
  crc32: number;
}

/** The row of a job that is about a batch as a whole. */
export const WHOLE_BATCH = -1;

export function emptyJob(): Job {
  return {
    shard: -1,
    offset: 0,
    bytes: 0,
    number: 0,
    epoch: 0,
    occurrence: 0,
    slot: 0,
    row: 0,
    orientation: 1,
    crc32: -1,
  };
}

/** The buffers of a {@link Control}; they go to the workers once, at their start. */
export interface ControlBuffers {
  readonly words: SharedArrayBuffer;
  readonly jobs: SharedArrayBuffer;
}

export class Control {
  readonly buffers: ControlBuffers;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #integers: Int32Array;
  readonly #capacity: number;

  /** Over fresh buffers for `slots` slots and at most `jobs` unfinished jobs, or over those of another thread. */
  constructor(from: ControlBuffers | { readonly slots: number; readonly jobs: number }) {
    this.buffers =
      'words' in from
        ? from
        : {
            words: new SharedArrayBuffer((SLOT_WORDS + from.slots * SLOT_STRIDE) * 4),
            // Twice as many places as unfinished jobs, in a power of two, so that TAIL may wrap around at 2^32.
            jobs: new SharedArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(2, from.jobs * 2))) * JOB_BYTES),
          };
    this.#words = new Int32Array(this.buffers.words);
    this.#numbers = new Float64Array(this.buffers.jobs);
    this.#integers = new Int32Array(this.buffers.jobs);
    this.#capacity = this.buffers.jobs.byteLength / JOB_BYTES;
  }

  // ---- main thread ----

  /** The slot now waits for `rows` finished jobs, and with `whole` for {@link finishWhole} after them. */
  openSlot(slot: number, rows: number, whole: boolean): void {
    const at = SLOT_WORDS + slot * SLOT_STRIDE;
    Atomics.store(this.#words, at + DONE, 0);
    Atomics.store(this.#words, at + WANTED, rows);
    Atomics.store(this.#words, at + POSTED, 0);
    Atomics.store(this.#words, at + WHOLE, whole ? WHOLE_PENDING : 0);
  }

  /** Messages that workers have posted for this slot since it was opened: so many will arrive. */
  posted(slot: number): number {
    return Atomics.load(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + POSTED);
  }

  /** Jobs of a full slot are to be done once more: it waits for `rows` of them again. */
  reopenSlot(slot: number, rows: number): void {
    Atomics.sub(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + DONE, rows);
  }

  /** Publishes a job. Workers that sleep look at it after the next {@link ring}. */
  push(job: Job): void {
    const tail = Atomics.load(this.#words, TAIL);
    const place = (tail >>> 0) % this.#capacity;
    const n = place * 8;
    const i = place * 16;
    this.#numbers[n] = job.offset;
    this.#numbers[n + 1] = job.number;
    this.#numbers[n + 2] = job.crc32;
    this.#integers[i + 6] = job.bytes;
    this.#integers[i + 7] = job.epoch;
    this.#integers[i + 8] = job.occurrence;
    this.#integers[i + 9] = job.slot;
    this.#integers[i + 10] = job.row;
    this.#integers[i + 11] = job.orientation;
    this.#integers[i + 12] = job.shard;
    Atomics.store(this.#words, TAIL, (tail + 1) | 0);
  }

  /** Wakes the workers that sleep. */
  ring(): void {
    Atomics.add(this.#words, BELL, 1);
    Atomics.notify(this.#words, BELL);
  }

  /** Rows of the slot that are finished. */
  finished(slot: number): number {
    return Atomics.load(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + DONE);
  }

  isFull(slot: number): boolean {
    const at = SLOT_WORDS + slot * SLOT_STRIDE;
    return Atomics.load(this.#words, at + DONE) >= Atomics.load(this.#words, at + WANTED);
  }

  /** Resolves when the slot is full, or at {@link wake}. The promise alone keeps no process alive. */
  async whenFull(slot: number): Promise<void> {
    const at = SLOT_WORDS + slot * SLOT_STRIDE + DONE;
    const done = Atomics.load(this.#words, at);
    if (this.isFull(slot)) return;
    const wait = Atomics.waitAsync(this.#words, at, done);
    if (wait.async) await wait.value;
  }

  /** Whether the batch as a whole is still to be worked on. */
  isWholePending(slot: number): boolean {
    return Atomics.load(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + WHOLE) === WHOLE_PENDING;
  }

  /** Resolves when it is not, or at {@link wake}. */
  async whenWhole(slot: number): Promise<void> {
    const wait = Atomics.waitAsync(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + WHOLE, WHOLE_PENDING);
    if (wait.async) await wait.value;
  }

  /** Ends every {@link whenFull}, full or not. */
  wake(): void {
    for (let at = SLOT_WORDS; at < this.#words.length; at += SLOT_STRIDE) {
      Atomics.notify(this.#words, at + DONE);
      Atomics.notify(this.#words, at + WHOLE);
    }
  }

  get warnings(): number {
    return Atomics.load(this.#words, WARNINGS);
  }

  /** Workers end after the job in hand. */
  stop(): void {
    Atomics.store(this.#words, STOP, 1);
    this.ring();
  }

  // ---- workers ----

  /** The next job, copied into `job`; sleeps while there is none. False: the worker is to end. */
  take(job: Job): boolean {
    for (;;) {
      const bell = Atomics.load(this.#words, BELL);
      if (Atomics.load(this.#words, STOP) !== 0) return false;
      const head = Atomics.load(this.#words, HEAD);
      if (((Atomics.load(this.#words, TAIL) - head) | 0) <= 0) {
        Atomics.wait(this.#words, BELL, bell);
        continue;
      }
      this.#read((head >>> 0) % this.#capacity, job);
      if (Atomics.compareExchange(this.#words, HEAD, head, (head + 1) | 0) === head) return true;
    }
  }

  #read(place: number, job: Job): void {
    const n = place * 8;
    const i = place * 16;
    job.offset = this.#numbers[n]!;
    job.number = this.#numbers[n + 1]!;
    job.crc32 = this.#numbers[n + 2]!;
    job.bytes = this.#integers[i + 6]!;
    job.epoch = this.#integers[i + 7]! >>> 0;
    job.occurrence = this.#integers[i + 8]!;
    job.slot = this.#integers[i + 9]!;
    job.row = this.#integers[i + 10]!;
    job.orientation = this.#integers[i + 11]!;
    job.shard = this.#integers[i + 12]!;
  }

  /**
   * A row of the slot is finished, for better or worse; wakes the main thread with the last one. True for the last row of a
   * batch without any trouble that is to be worked on as a whole: the caller does that, and then {@link finishWhole}. Where
   * there was trouble, the main thread deals with it first.
   */
  finish(slot: number): boolean {
    const at = SLOT_WORDS + slot * SLOT_STRIDE;
    const done = Atomics.add(this.#words, at + DONE, 1) + 1;
    if (done < Atomics.load(this.#words, at + WANTED)) return false;
    const isUntroubled = Atomics.load(this.#words, at + POSTED) === 0;
    Atomics.notify(this.#words, at + DONE);
    return isUntroubled && this.isWholePending(slot);
  }

  /** Rows of the batch that the slot is open for. */
  rows(slot: number): number {
    return Atomics.load(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + WANTED);
  }

  /** The batch has been worked on as a whole. */
  finishWhole(slot: number): void {
    const at = SLOT_WORDS + slot * SLOT_STRIDE + WHOLE;
    Atomics.store(this.#words, at, 0);
    Atomics.notify(this.#words, at);
  }

  /** To be called right before a message for this slot is posted. */
  countPosted(slot: number): void {
    Atomics.add(this.#words, SLOT_WORDS + slot * SLOT_STRIDE + POSTED, 1);
  }

  countWarnings(count: number): void {
    Atomics.add(this.#words, WARNINGS, count);
  }
}
