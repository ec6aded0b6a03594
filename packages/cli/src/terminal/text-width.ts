import stringWidth, { type Options } from 'string-width';

/** Nothing but what takes one column each. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * Columns that a text takes in a terminal. Plain text is as wide as it is long: string-width asks the tables of Unicode about each
 * character, which took half of the time of `--help`. scripts/bundle.mjs gives this to all that asks for string-width.
 */
export default function textWidth(text: string, options?: Options): number {
  return PLAIN.test(text) ? text.length : stringWidth(text, options);
}
