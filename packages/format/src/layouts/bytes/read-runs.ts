/** A range of bytes of a shard to read. */
export interface Span {
  readonly offset: number;
  readonly bytes: number;
}

/** The spans of one read, in the order of the file. */
export interface ReadRun<T extends Span> extends Span {
  readonly spans: readonly T[];
}

/** Maximum length of a read, unless one span is longer. */
const RUN_BYTES = 4 << 20;
/** A gap of up to this many bytes between two spans is read too, which costs less than another read. */
const GAP_BYTES = 64 << 10;

/** Plans the reads that cover all `spans`, in the order of the file. */
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
