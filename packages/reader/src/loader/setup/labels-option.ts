/** The option `labels`: numbers of a field or column, as targets for regression or for several classes at once. */
import { OptionError, optionName, sentence } from '@shardtool/base';

/** Source of labels. */
export interface LabelsInput {
  /** A field, or a column of the labels file. */
  readonly field: string;
  /**
   * Number of classes. The field then has a list of class numbers, and a row of the result is 1 for these classes and 0
   * for all others.
   */
  readonly classes?: number;
}

/** The checked option `labels`. */
export interface LabelSource {
  readonly field: string;
  /** Null: the numbers are used unchanged. */
  readonly classes: number | null;
}

const MAX_CLASSES = 1_000_000;

/** Checks the option `labels`. Throws {@link OptionError}. */
export function checkLabels(input: string | LabelsInput): LabelSource {
  if (typeof input === 'string') return { field: input, classes: null };
  const { field, classes = null, ...more } = input;
  const [unknown] = Object.keys(more);
  const isValid =
    typeof field === 'string' &&
    unknown === undefined &&
    (classes === null || (Number.isInteger(classes) && classes >= 1 && classes <= MAX_CLASSES));
  if (isValid) return { field, classes };
  throw new OptionError(
    {},
    sentence`The loader's option ${optionName('labels')} is invalid: ${JSON.stringify(input)}. Expected the name of a field, or { field, classes } with a number of classes from 1 to ${MAX_CLASSES}.`,
  );
}
