import { type OverlayEntry, PackedChanges, type SplitRule } from '@shardtool/format';

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
  const counter = new EntryCounter();
  for (const entry of entries) counter.add(entry);
  return counter;
}

export class EntryCounter implements OverlayCounts {
  excluded = 0;
  relabelled = 0;
  set = 0;
  kept: number | null = null;
  readonly splits: { name: string; samples: number; rule: SplitRule }[] = [];

  add(entry: OverlayEntry): void {
    // The totals of packed changes follow them.
    if (entry instanceof PackedChanges) return;
    if ('changed' in entry) {
      this.excluded += entry.changed.excluded;
      this.relabelled += entry.changed.relabelled;
      this.set += entry.changed.set;
    } else if ('exclude' in entry) this.excluded++;
    else if ('cls' in entry) this.relabelled++;
    else if ('set' in entry) this.set++;
    else if ('kept' in entry) this.kept = entry.kept;
    else if ('rule' in entry) this.splits.push({ name: entry.split, samples: entry.samples, rule: entry.rule });
  }
}
