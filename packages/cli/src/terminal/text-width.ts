import stringWidth, { type Options } from 'string-width';

/** Text in which every character takes one column. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * Number of columns that a text takes in a terminal. For plain text, that is its length. string-width looks up each character in
 * Unicode tables, which took half of the time of `--help`. So scripts/bundle.mjs replaces string-width by this function.
 */
export default function textWidth(text: string, options?: Options): number {
  return PLAIN.test(text) ? text.length : stringWidth(text, options);
}
