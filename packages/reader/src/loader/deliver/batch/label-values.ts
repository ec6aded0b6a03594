import { OptionError, optionName, sentence } from '@shardtool/base';
import type { FieldValue } from '../../../dataset/fields/field-values.js';
import type { LabelSource } from '../../setup/labels-option.js';

/** Labels of a batch: float32 of this shape, [n] or [n, k]. */
export interface LabelValues {
  readonly values: Float32Array;
  readonly shape: readonly number[];
}

/** Returns the labels of one row, or the end of an error message about its value. */
export function labelsOfRow(value: FieldValue | null, { classes }: LabelSource): readonly number[] | string {
  const numbers = numbersOf(value);
  if (numbers === null)
    return classes === null ? 'has no number and no list of numbers' : 'has no list of class numbers';
  if (classes === null) return numbers;
  const wrong = numbers.find((number) => !(Number.isInteger(number) && number >= 0 && number < classes));
  return wrong === undefined ? numbers : `has the class number ${wrong}, and there are ${classes} classes`;
}

/** The numbers of a value. Null if it is not a number or a list of numbers. */
function numbersOf(value: FieldValue | null): readonly number[] | null {
  if (typeof value === 'number' || typeof value === 'bigint') return [Number(value)];
  if (Array.isArray(value)) return value.every((item) => typeof item === 'number') ? value : null;
  if (value === null || typeof value !== 'object' || !('data' in value) || !('dtype' in value)) return null;
  const { data } = value as { readonly data: unknown };
  if (!ArrayBuffer.isView(data) || data instanceof DataView) return null;
  // Arrays of other dtypes are bytes.
  if (data instanceof Uint8Array && !/^\|[ub]1$/.test(String(value.dtype))) return null;
  return Array.from(data as unknown as ArrayLike<number | bigint>, Number);
}

/**
 * The labels of a batch: [n] if each row has one number, otherwise [n, k]; with `classes`, zeros and ones of the shape
 * [n, classes]. Rows that do not count are 0. Throws {@link OptionError} if rows have different lengths.
 */
export function labelValues(
  values: readonly (FieldValue | null)[],
  valid: Uint8Array,
  source: LabelSource,
): LabelValues {
  const rows = values.map((value, row) => {
    const numbers = labelsOfRow(value, source);
    return typeof numbers === 'string' || (valid[row] === 0 && numbers.length === 0) ? null : numbers;
  });
  const { field, classes } = source;
  if (classes !== null) {
    const hot = new Float32Array(rows.length * classes);
    rows.forEach((numbers, row) => {
      for (const number of numbers ?? []) hot[row * classes + number] = 1;
    });
    return { values: hot, shape: [rows.length, classes] };
  }
  const width = rows.find((numbers) => numbers !== null)?.length ?? 1;
  const taken = new Float32Array(rows.length * width);
  rows.forEach((numbers, row) => {
    if (numbers === null) return;
    if (numbers.length !== width) {
      throw new OptionError(
        {},
        sentence`The field "${field}" of the option ${optionName('labels')} has ${width} numbers in one sample and ${numbers.length} in another: if they are class numbers, set classes; otherwise all samples need equally many numbers.`,
      );
    }
    taken.set(numbers, row * width);
  });
  return { values: taken, shape: width === 1 ? [rows.length] : [rows.length, width] };
}
