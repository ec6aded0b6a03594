import { widthOf } from '../terminal/columns.js';

/** A space at which lines are not broken. */
export const NO_BREAK = '\u00a0';

/** Lines of a text that are at most `columns` wide, broken at spaces. A longer word has its own line. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line].map((one) => one.replaceAll(NO_BREAK, ' '));
}
