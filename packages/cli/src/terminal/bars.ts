import { padded, paddedLeft, widthOf } from './columns.js';

const BAR_COLUMNS = 40;

/** A row of a chart. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Text between the label and the bar. */
  readonly text: string;
}

/** Rows with labels, texts and bars below each other, the longest bar for the largest value. */
export function barLines(bars: readonly Bar[]): string[] {
  const largest = Math.max(1, ...bars.map(({ value }) => value));
  const labelWidth = bars.reduce((most, { label }) => Math.max(most, widthOf(label)), 0);
  const textWidth = bars.reduce((most, { text }) => Math.max(most, widthOf(text)), 0);
  return bars.map(({ label, value, text }) => {
    // A value that is not 0 is always visible.
    const length = value === 0 ? 0 : Math.max(1, Math.round((value / largest) * BAR_COLUMNS));
    return `  ${padded(label, labelWidth)}  ${paddedLeft(text, textWidth)}  ${'#'.repeat(length)}`.trimEnd();
  });
}
