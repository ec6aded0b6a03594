import type { ColumnValue } from '../sample/label-column.js';

/** A number of any length. A leading zero marks an identifier. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const INTEGER = /^-?\d+$/;
/** Matches a missing or infinite value among numbers. */
const NO_NUMBER = /^(nan|[+-]?inf(inity)?)$/i;

/**
 * Matches a whole number as it appears in a column with gaps: pandas writes class 3 as 3.0 there, and a gap as an empty
 * cell or as nan.
 */
const WHOLE = /^((?:0|[1-9]\d*)\.0+|nan)$/i;

function isNaNText(value: ColumnValue): boolean {
  return String(value).toLowerCase() === 'nan';
}

/** How the values of a column are converted, which depends on all of them. */
export class ColumnKind {
  readonly #isJson: boolean;
  #areBooleans = true;
  #areNumbers = true;
  #areWhole = true;
  /** Whether a cell is a number, and not only a gap such as `nan`. */
  #hasNumber = false;
  #hasWhole = false;

  constructor(isJson: boolean) {
    this.#isJson = isJson;
  }

  /** Takes the next value of the column. */
  add(value: ColumnValue): void {
    if (value === null) return;
    this.#areBooleans &&= typeof value === 'boolean';
    if (this.#isJson) {
      this.#areNumbers &&= typeof value === 'number';
      return;
    }
    const text = String(value);
    if (this.#areNumbers) {
      this.#areNumbers = isNumber(text) || NO_NUMBER.test(text);
      this.#hasNumber ||= NUMBER.test(text);
    }
    if (this.#areWhole) {
      this.#areWhole = WHOLE.test(text) || /^\d+$/.test(text);
      this.#hasWhole ||= /^\d/.test(text);
    }
  }

  /**
   * The conversion to values of one type: numbers or booleans if all values are, else strings. In CSV, `nan` among
   * numbers is a missing value, and `inf` is infinite.
   */
  values(): (value: ColumnValue) => ColumnValue {
    if (this.#areBooleans) return (value) => value;
    const areNumbers = this.#areNumbers && (this.#isJson || this.#hasNumber);
    return (value) => (value === null ? null : areNumbers ? numberOf(value) : String(value));
  }

  /** The conversion to names of classes, '' for none. In CSV, classes that are whole numbers lose their `.0`. */
  classes(): (value: ColumnValue) => string {
    if (this.#isJson || !this.#areWhole || !this.#hasWhole) return (value) => String(value ?? '');
    return (value) => (value === null || isNaNText(value) ? '' : String(value).replace(/\.0+$/, ''));
  }
}

/** Whether a JavaScript number represents the cell: integers must be exact, others must not overflow. */
function isNumber(text: string): boolean {
  if (!NUMBER.test(text)) return false;
  return INTEGER.test(text) ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text));
}

function numberOf(value: ColumnValue): number | null {
  if (typeof value !== 'string' || !NO_NUMBER.test(value)) return Number(value);
  if (isNaNText(value)) return null;
  return value.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
