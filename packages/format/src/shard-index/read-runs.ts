/** Bytes of a shard that are wanted. */
export interface Span {
  readonly offset: number;
  readonly bytes: number;
}

/** Spans that one read gets, in the order of the file. */
export interface ReadRun<T extends Span> extends Span {
  readonly spans: readonly T[];
}

/** A read is at most so long, unless one span is longer. */
const RUN_BYTES = 4 << 20;
/** Bytes between two spans that are read along, which costs less than a read of its own. */
const GAP_BYTES = 64 << 10;

/** Plans the reads that get all of `spans` in the order of the file. */
export function planRuns<T extends Span>(spans: readonly T[]): ReadRun<T>[] {
  const runs: { offset: number; bytes: number; spans: T[] }[] = [];
  for (const span of spans.toSorted((a, b) => a.offset - b.offset)) {
    const run = runs.at(-1);
    if (run !== undefined) {
      const gap = span.offset - run.offset - run.bytes;
      const bytes = Math.max(run.bytes, span.offset + span.bytes - run.offset);
      if (gap <= GAP_BYTES && bytes <= RUN_BYTES) {
        run.bytes = bytes;
        run.spans.push(span);
        continue;
      }
    }
    runs.push({ offset: span.offset, bytes: span.bytes, spans: [span] });
  }
  return runs;
}
