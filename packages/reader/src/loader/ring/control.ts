/**
 * The shared memory through which the main thread and the decode workers communicate: control words, a ring of jobs,
 * and the states of the slots. A job is a few numbers, never a message, so that a sample costs the main thread well
 * under a microsecond.
 *
 * There is one writer, and there are many readers. The main thread writes job `tail`, then publishes it by incrementing
 * TAIL. A worker first reads job `head`, and then takes it by incrementing HEAD with compareExchange. The main thread
 * overwrites a place only after HEAD has passed it. So if the compareExchange succeeds, the worker has read a complete
 * job.
 */
import { type Job, JobRecords, jobMemory } from './job.js';
import { SlotStates, slotStateMemory } from './slot-states.js';

/** Control words (Int32), one entry per word. Tail and head wrap around at 2^32; their difference stays correct. */
export const CONTROL_WORD = {
  tail: 0,
  head: 1,
  /** Incremented when sleeping workers should look for jobs again. */
  wake: 2,
  /** 1 tells the workers to end. */
  stop: 3,
  /** Number of images that were decoded with a warning, over all workers. */
  warnings: 4,
  /** Number of images of which only the data of a crop was decoded, over all workers. */
  spliced: 5,
  /** Number of images with more than 8 bits per channel, of which pixels have the upper 8 bits, over all workers. */
  narrowed: 6,
  /**
   * Time of all workers in microseconds, measured on some rows: for decoding (this word), and for the rest (the next
   * word). Both wrap around.
   */
  decodeTime: 7,
  transformTime: 8,
  /** Reads of workers from shards: their number, their time, and the time that they take from the page cache at most, in microseconds. They wrap around. */
  reads: 9,
  readTime: 10,
  cachedReadTime: 11,
} as const;
const {
  tail: TAIL,
  head: HEAD,
  wake: WAKE,
  stop: STOP,
  warnings: WARNINGS,
  spliced: SPLICED,
  narrowed: NARROWED,
  decodeTime: DECODE_TIME,
  transformTime: TRANSFORM_TIME,
  reads: READS,
  readTime: READ_TIME,
  cachedReadTime: CACHED_READ_TIME,
} = CONTROL_WORD;

/** The buffers of a {@link Control}. They are sent to the workers once, when these start. */
export interface ControlBuffers {
  readonly words: SharedArrayBuffer;
  readonly jobs: SharedArrayBuffer;
  readonly slots: SharedArrayBuffer;
}

export class Control {
  readonly buffers: ControlBuffers;
  readonly slots: SlotStates;
  readonly #words: Int32Array;
  readonly #jobs: JobRecords;
  /** Values that {@link takeWork} read last. */
  #decodeTime = 0;
  #transformTime = 0;
  /** Values that {@link takeReads} read last. */
  #reads = 0;
  #readTime = 0;
  #cachedReadTime = 0;

  /** Uses the buffers of another thread. */
  constructor(buffers: ControlBuffers) {
    this.buffers = buffers;
    this.slots = new SlotStates(buffers.slots);
    this.#words = new Int32Array(buffers.words);
    this.#jobs = new JobRecords(buffers.jobs);
  }

  /** Makes new buffers for `slots` slots and at most `jobs` unfinished jobs. */
  static create({ slots, jobs }: { readonly slots: number; readonly jobs: number }): Control {
    return new Control({
      words: new SharedArrayBuffer(Object.keys(CONTROL_WORD).length * 4),
      // The number of places is a power of two, so that TAIL may wrap around at 2^32, and at least twice the number of
      // unfinished jobs.
      jobs: jobMemory(2 ** Math.ceil(Math.log2(Math.max(2, jobs * 2)))),
      slots: slotStateMemory(slots),
    });
  }

  // ---- main thread ----

  /** Publishes a job. Sleeping workers find it after the next {@link notify}. */
  push(job: Job): void {
    const tail = Atomics.load(this.#words, TAIL);
    this.#jobs.write((tail >>> 0) % this.#jobs.length, job);
    Atomics.store(this.#words, TAIL, (tail + 1) | 0);
  }

  /** Wakes the workers that sleep. */
  notify(): void {
    Atomics.add(this.#words, WAKE, 1);
    Atomics.notify(this.#words, WAKE);
  }

  get warnings(): number {
    return Atomics.load(this.#words, WARNINGS);
  }

  get spliced(): number {
    return Atomics.load(this.#words, SPLICED);
  }

  get narrowed(): number {
    return Atomics.load(this.#words, NARROWED);
  }

  /** Returns the sums of the arguments of {@link countWork} since the last call. */
  takeWork(): { decode: number; transform: number } {
    const decode = Atomics.load(this.#words, DECODE_TIME);
    const transform = Atomics.load(this.#words, TRANSFORM_TIME);
    const work = { decode: (decode - this.#decodeTime) >>> 0, transform: (transform - this.#transformTime) >>> 0 };
    this.#decodeTime = decode;
    this.#transformTime = transform;
    return work;
  }

  /** Sums of the arguments of {@link countRead} since the last call, and the number of its calls. */
  takeReads(): { reads: number; time: number; cachedTime: number } {
    const reads = Atomics.load(this.#words, READS);
    if (reads === this.#reads) return { reads: 0, time: 0, cachedTime: 0 };
    const time = Atomics.load(this.#words, READ_TIME);
    const cachedTime = Atomics.load(this.#words, CACHED_READ_TIME);
    const taken = {
      reads: (reads - this.#reads) >>> 0,
      time: (time - this.#readTime) >>> 0,
      cachedTime: (cachedTime - this.#cachedReadTime) >>> 0,
    };
    this.#reads = reads;
    this.#readTime = time;
    this.#cachedReadTime = cachedTime;
    return taken;
  }

  /** Workers end after their current job. */
  stop(): void {
    Atomics.store(this.#words, STOP, 1);
    this.notify();
  }

  // ---- workers ----

  /** Copies the next job into `job`, and sleeps while there is none. Returns false if the worker should end. */
  take(job: Job): boolean {
    for (;;) {
      const count = Atomics.load(this.#words, WAKE);
      if (Atomics.load(this.#words, STOP) !== 0) return false;
      const head = Atomics.load(this.#words, HEAD);
      if (((Atomics.load(this.#words, TAIL) - head) | 0) <= 0) {
        Atomics.wait(this.#words, WAKE, count);
        continue;
      }
      this.#jobs.read((head >>> 0) % this.#jobs.length, job);
      if (Atomics.compareExchange(this.#words, HEAD, head, (head + 1) | 0) === head) return true;
    }
  }

  countWarnings(count: number): void {
    Atomics.add(this.#words, WARNINGS, count);
  }

  countNarrowed(count: number): void {
    Atomics.add(this.#words, NARROWED, count);
  }

  /** Adds microseconds of a worker. */
  countWork(decode: number, transform: number): void {
    Atomics.add(this.#words, DECODE_TIME, decode);
    Atomics.add(this.#words, TRANSFORM_TIME, transform);
  }

  /** A worker read from a shard: the time that it took, and the most that it takes from the page cache, in microseconds. */
  countRead(time: number, cachedTime: number): void {
    // The number last: a thread that reads it also reads the times.
    Atomics.add(this.#words, READ_TIME, time);
    Atomics.add(this.#words, CACHED_READ_TIME, cachedTime);
    Atomics.add(this.#words, READS, 1);
  }

  countSpliced(count: number): void {
    Atomics.add(this.#words, SPLICED, count);
  }
}
