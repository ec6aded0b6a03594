/** Soft labels: one share of each class for each row of a batch. */
import { OptionError, optionName, sentence } from '@shardtool/base';

export interface SoftLabelSettings {
  readonly numClasses: number;
  /** Share of each label that all classes get in equal parts. */
  readonly labelSmoothing: number;
}

/** A row's own class, the class of the row that it is mixed with, and the weight of its own. */
interface MixedLabels {
  readonly labels: Int32Array;
  readonly otherLabels: Int32Array;
  readonly weights: Float64Array;
  /** 0 marks a row that does not count. */
  readonly valid: Uint8Array;
}

/**
 * Soft labels float32 [n, numClasses], as timm's `mixup_target` computes them: weight * own + (1 - weight) * other, of one-hot labels with
 * smoothing. A row without a class (-1) that does not count has only the smoothing. Throws {@link OptionError} if a label is not a class.
 */
export function softLabels(
  { labels, otherLabels, weights, valid }: MixedLabels,
  { numClasses, labelSmoothing }: SoftLabelSettings,
): Float32Array {
  const off = Math.fround(labelSmoothing / numClasses);
  const on = Math.fround(1 - labelSmoothing + labelSmoothing / numClasses);
  const soft = new Float32Array(labels.length * numClasses);
  for (let row = 0; row < labels.length; row++) {
    const weight = Math.fround(weights[row]!);
    const rest = Math.fround(1 - weights[row]!);
    const mixed = (own: number, other: number) => Math.fround(own * weight) + Math.fround(other * rest);
    const start = row * numClasses;
    soft.fill(mixed(off, off), start, start + numClasses);
    const own = labels[row]!;
    const other = otherLabels[row]!;
    if (valid[row] !== 0) {
      checkClass(own, numClasses);
      if (rest > 0) checkClass(other, numClasses);
    }
    if (isClass(own, numClasses)) soft[start + own] = mixed(on, own === other ? on : off);
    if (other !== own && isClass(other, numClasses)) soft[start + other] = mixed(off, on);
  }
  return soft;
}

function isClass(label: number, numClasses: number): boolean {
  return label >= 0 && label < numClasses;
}

function checkClass(label: number, numClasses: number): void {
  if (isClass(label, numClasses)) return;
  throw new OptionError(
    {},
    label < 0
      ? sentence`A sample without a class has no soft label: give all samples a class, or remove numClasses from the option ${optionName('mix')}.`
      : sentence`The label ${label} is too large for numClasses ${numClasses} of the option ${optionName('mix')}: set numClasses to the number of classes.`,
  );
}
