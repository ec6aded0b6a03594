import { otherRow, partnerOf } from '../../../transform/mixes/mix.js';
import { type Mixes, mixesLabels } from '../../../transform/mixes/mix-option.js';
import type { BatchFacts } from '../../ring/batch-facts.js';
import type { PendingBatch } from '../pending-batch.js';
import type { BatchMix } from './batch.js';

/** Describes how the batch was mixed. Null if it was not mixed. */
export function mixOf(pending: PendingBatch, facts: BatchFacts, mixes: Mixes): BatchMix | null {
  const { slot, rows, labels } = pending;
  const fact = facts.mix(slot, rows);
  if (fact === null) return null;
  const mix = mixes[fact.index]!;
  const { weights } = fact;
  if (!mixesLabels(mix)) {
    const { name } = mix;
    return { name, weight: weights[0]!, weights, otherLabels: labels.slice(), numClasses: null, labelSmoothing: 0 };
  }
  const partner = partnerOf(mix);
  const otherLabels = labels.map((label, row) => {
    const other = otherRow(partner, row, rows);
    // A row is not mixed with a sample that was skipped.
    return pending.skipped.has(other) ? label : labels[other]!;
  });
  const { name, numClasses = null, labelSmoothing } = mix;
  return { name, weight: weights[0]!, weights, otherLabels, numClasses, labelSmoothing };
}
