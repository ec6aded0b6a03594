import { layOut } from './fields.js';

/** The data that a worker needs to decode one sample into one row, or to process a batch as a whole. */
export interface Job {
  /** The shard whose file the encoded image is read from, or {@link IN_ARENA}. */
  shard: number;
  /** Place of the encoded image in the shard or in the arena, and its length in bytes. */
  offset: number;
  bytes: number;
  /** Number of the sample's dataset in a mixture; otherwise 0. */
  source: number;
  /** Index of the sample in its dataset. Together with seed and epoch, it determines the random numbers. */
  number: number;
  epoch: number;
  /** Higher than 0 if the same sample is repeated in an epoch. */
  occurrence: number;
  slot: number;
  /** The row of the slot, or {@link WHOLE_BATCH}. */
  row: number;
  /** EXIF orientation 1 to 8, or 0 if the worker must read it. */
  orientation: number;
  /** Expected crc32 of the encoded image, or {@link UNCHECKED}. */
  crc32: number;
  /** Number of the batch's size; 0 if there is only one. */
  bucket: number;
  /** Offset in the arena of the image's part of the crop index, and its length in bytes; 0 if there is none. */
  cropOffset: number;
  cropBytes: number;
  /** crc32 of the encoded image, with which the crop index is checked even if the image is not; or {@link UNCHECKED}. */
  cropCrc32: number;
}

/** The `shard` of a job whose bytes are in the arena. */
export const IN_ARENA = -1;
/** The `crc32` of bytes that should not be checked. */
export const UNCHECKED = -1;
/** The `row` of a job or message about a batch as a whole. */
export const WHOLE_BATCH = -1;

/** Layout of a job in the ring: one entry per field. */
const { places, bytes: JOB_BYTES } = layOut<keyof Job>({
  offset: 'float64',
  number: 'float64',
  crc32: 'float64',
  cropOffset: 'float64',
  cropCrc32: 'float64',
  bytes: 'int32',
  epoch: 'uint32',
  occurrence: 'int32',
  source: 'int32',
  slot: 'int32',
  row: 'int32',
  orientation: 'int32',
  shard: 'int32',
  cropBytes: 'int32',
  bucket: 'int32',
});
// Looked up once, because jobs are written and read millions of times.
const {
  offset,
  number,
  crc32,
  cropOffset,
  cropCrc32,
  bytes,
  epoch,
  occurrence,
  source,
  slot,
  row,
  orientation,
  shard,
  cropBytes,
  bucket,
} = places;
const LONGS = JOB_BYTES / 8;
const SHORTS = JOB_BYTES / 4;

export function emptyJob(): Job {
  return {
    shard: IN_ARENA,
    offset: 0,
    bytes: 0,
    number: 0,
    epoch: 0,
    occurrence: 0,
    source: 0,
    slot: 0,
    row: 0,
    orientation: 1,
    crc32: UNCHECKED,
    cropOffset: 0,
    cropCrc32: UNCHECKED,
    cropBytes: 0,
    bucket: 0,
  };
}

/** The job that processes the batch of a slot as a whole. */
export function wholeBatchJob(ofSlot: number, ofBucket: number): Job {
  return { ...emptyJob(), slot: ofSlot, row: WHOLE_BATCH, bucket: ofBucket };
}

/** Memory for `jobs` jobs. */
export function jobMemory(jobs: number): SharedArrayBuffer {
  return new SharedArrayBuffer(jobs * JOB_BYTES);
}

/** The entries of a ring of jobs. */
export class JobRecords {
  readonly length: number;
  readonly #longs: Float64Array;
  readonly #shorts: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.length = memory.byteLength / JOB_BYTES;
    this.#longs = new Float64Array(memory);
    this.#shorts = new Int32Array(memory);
  }

  write(place: number, job: Job): void {
    const [longs, shorts] = [this.#longs, this.#shorts];
    const n = place * LONGS;
    const i = place * SHORTS;
    longs[n + offset] = job.offset;
    longs[n + number] = job.number;
    longs[n + crc32] = job.crc32;
    longs[n + cropOffset] = job.cropOffset;
    longs[n + cropCrc32] = job.cropCrc32;
    shorts[i + bytes] = job.bytes;
    shorts[i + epoch] = job.epoch;
    shorts[i + occurrence] = job.occurrence;
    shorts[i + source] = job.source;
    shorts[i + slot] = job.slot;
    shorts[i + row] = job.row;
    shorts[i + orientation] = job.orientation;
    shorts[i + shard] = job.shard;
    shorts[i + cropBytes] = job.cropBytes;
    shorts[i + bucket] = job.bucket;
  }

  read(place: number, job: Job): void {
    const [longs, shorts] = [this.#longs, this.#shorts];
    const n = place * LONGS;
    const i = place * SHORTS;
    job.offset = longs[n + offset]!;
    job.number = longs[n + number]!;
    job.crc32 = longs[n + crc32]!;
    job.cropOffset = longs[n + cropOffset]!;
    job.cropCrc32 = longs[n + cropCrc32]!;
    job.bytes = shorts[i + bytes]!;
    job.epoch = shorts[i + epoch]! >>> 0;
    job.occurrence = shorts[i + occurrence]!;
    job.source = shorts[i + source]!;
    job.slot = shorts[i + slot]!;
    job.row = shorts[i + row]!;
    job.orientation = shorts[i + orientation]!;
    job.shard = shorts[i + shard]!;
    job.cropBytes = shorts[i + cropBytes]!;
    job.bucket = shorts[i + bucket]!;
  }
}
