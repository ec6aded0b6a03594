import { ShardtoolError } from '@shardtool/base';

/** The read buffers are full, and no other work will free space in them. */
export class ReadBufferError extends ShardtoolError {
  static override readonly kind: string = 'ReadBufferError';
}

/** Shared memory is allocated in segments of this size, because the size of a single buffer is limited. */
export const SEGMENT_BYTES = 2 ** 30;
/** Blocks begin at multiples of a cache line. */
const ALIGNMENT = 64;

interface Gap {
  offset: number;
  bytes: number;
}

/**
 * Allocates blocks of different sizes in shared memory. It uses the lowest gap that is large enough, so that unused
 * pages are never touched and take no memory. A place is a byte offset over all segments. A block never crosses from
 * one segment to the next.
 */
export class Arena {
  readonly capacity: number;
  readonly segments: readonly SharedArrayBuffer[];
  readonly #gaps: Gap[] = [];
  readonly #begin: number;
  #used = 0;
  #peak = 0;

  /**
   * `capacity` is in bytes; only whole cache lines are used. Memory is reserved here, and allocated when it is first
   * written. Offsets continue after `segmentsBefore` segments of other arenas, so that one list of segments can contain
   * those of all arenas.
   */
  constructor(capacity: number, segmentsBefore = 0) {
    this.#begin = segmentsBefore * SEGMENT_BYTES;
    this.capacity = Math.floor(capacity / ALIGNMENT) * ALIGNMENT;
    const segments: SharedArrayBuffer[] = [];
    for (let start = 0; start < this.capacity; start += SEGMENT_BYTES) {
      segments.push(new SharedArrayBuffer(Math.min(SEGMENT_BYTES, this.capacity - start)));
    }
    this.segments = segments;
    this.#clear();
  }

  /** Number of bytes that are allocated now. `peak` is the largest number so far. */
  get used(): number {
    return this.#used;
  }
  get peak(): number {
    return this.#peak;
  }

  /** Returns the offset of `bytes` free bytes, or -1 if there are none now. */
  allocate(bytes: number): number {
    const size = placeBytes(bytes);
    const index = this.#gaps.findIndex((gap) => gap.bytes >= size);
    if (index < 0) return -1;
    const gap = this.#gaps[index]!;
    const offset = gap.offset;
    if (gap.bytes === size) this.#gaps.splice(index, 1);
    else {
      gap.offset += size;
      gap.bytes -= size;
    }
    this.#used += size;
    this.#peak = Math.max(this.#peak, this.#used);
    return offset;
  }

  /** Frees what {@link allocate} returned for the same number of bytes. */
  free(offset: number, bytes: number): void {
    const size = placeBytes(bytes);
    this.#used -= size;
    const at = this.#gaps.findIndex((gap) => gap.offset > offset);
    const index = at < 0 ? this.#gaps.length : at;
    const before = this.#gaps[index - 1];
    const after = this.#gaps[index];
    const joinsBefore = before !== undefined && before.offset + before.bytes === offset && offset % SEGMENT_BYTES !== 0;
    const end = offset + size;
    const joinsAfter = after !== undefined && after.offset === end && end % SEGMENT_BYTES !== 0;
    if (joinsBefore && joinsAfter) {
      before.bytes += size + after.bytes;
      this.#gaps.splice(index, 1);
    } else if (joinsBefore) before.bytes += size;
    else if (joinsAfter) {
      after.offset = offset;
      after.bytes += size;
    } else this.#gaps.splice(index, 0, { offset, bytes: size });
  }

  /**
   * Moves all allocations together, so that there is one gap after them. `parts` are all allocations; their offsets are
   * updated.
   */
  compact(parts: { place: number; readonly bytes: number }[]): void {
    this.#clear();
    this.#used = 0;
    for (const part of parts.sort((a, b) => a.place - b.place)) {
      const place = this.allocate(part.bytes);
      if (place !== part.place) this.view(place, part.bytes).set(this.view(part.place, part.bytes));
      part.place = place;
    }
  }

  #clear(): void {
    this.#gaps.length = 0;
    for (const [k, { byteLength }] of this.segments.entries()) {
      this.#gaps.push({ offset: this.#begin + k * SEGMENT_BYTES, bytes: byteLength });
    }
  }

  /** A view of `bytes` bytes at `offset`. */
  view(offset: number, bytes: number): Uint8Array {
    return arenaView(this.segments, offset - this.#begin, bytes);
  }
}

/** Number of bytes that an allocation of `bytes` bytes takes in an arena. */
export function placeBytes(bytes: number): number {
  return Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
}

/**
 * Returns a view of `bytes` bytes at `offset` of an arena's segments. Workers use it, because they only have the
 * segments.
 */
export function arenaView(segments: readonly SharedArrayBuffer[], offset: number, bytes: number): Uint8Array {
  const segment = Math.floor(offset / SEGMENT_BYTES);
  return new Uint8Array(segments[segment]!, offset - segment * SEGMENT_BYTES, bytes);
}
