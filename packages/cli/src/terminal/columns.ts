import stringWidth from './text-width.js';

/** Returns the width of a text in a terminal: two columns for a wide character, none for a combining accent. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** The text, padded with spaces to this number of columns. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)));
}

/** The same with the spaces before the text. */
export function paddedLeft(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - widthOf(text))) + text;
}

/** As much of the text as fits into this number of columns. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let cut = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (widthOf(cut + segment) > columns) break;
    cut += segment;
  }
  return cut;
}
