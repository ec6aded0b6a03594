import type { OverlayEntry, SplitRule } from '@shardtool/format';

/** Changes of an overlay, as numbers of samples. */
export interface OverlayCounts {
  readonly excluded: number;
  readonly relabelled: number;
  /** Number of samples whose columns are set. */
  readonly set: number;
  /** Number of samples in a subset; null if the overlay is not a subset. */
  readonly kept: number | null;
  readonly splits: readonly { readonly name: string; readonly samples: number; readonly rule: SplitRule }[];
}

export function countEntries(entries: Iterable<OverlayEntry>): OverlayCounts {
  const counts = { excluded: 0, relabelled: 0, set: 0 };
  let kept: number | null = null;
  const splits: { name: string; samples: number; rule: SplitRule }[] = [];
  for (const entry of entries) {
    if ('exclude' in entry) counts.excluded++;
    else if ('cls' in entry) counts.relabelled++;
    else if ('set' in entry) counts.set++;
    else if ('kept' in entry) kept = entry.kept;
    else if ('rule' in entry) splits.push({ name: entry.split, samples: entry.samples, rule: entry.rule });
  }
  return { ...counts, kept, splits };
}
