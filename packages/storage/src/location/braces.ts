/**
 * Number of texts that a pattern with braces expands to: `{a,b}-{1..3}` expands to 6. It counts without expanding,
 * because thirty pairs of braces expand to a thousand million texts. The result may be infinite.
 */
export function countBraces(pattern: string): number {
  const open: Group[] = [];
  let group: Group = { at: -1, sum: 0, product: 1, hasComma: false };
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i];
    if (character === '\\') i++;
    else if (character === '{') {
      open.push(group);
      group = { at: i, sum: 0, product: 1, hasComma: false };
    } else if (character === ',' && open.length > 0) {
      group.sum += group.product;
      group.product = 1;
      group.hasComma = true;
    } else if (character === '}' && open.length > 0) {
      const choices = group.hasComma
        ? group.sum + group.product
        : range(pattern.slice(group.at + 1, i)) * group.product;
      group = open.pop()!;
      group.product *= choices;
    }
  }
  // An unclosed brace is text.
  return open.reduce((product, outer) => product * outer.product, group.sum + group.product);
}

interface Group {
  /** Position of the opening brace. */
  readonly at: number;
  /** Counts of the complete choices, and of the current one. */
  sum: number;
  product: number;
  hasComma: boolean;
}

/** Number of values of `1..100`, `a..z` or `1..100..5`; 1 for any other text. */
function range(text: string): number {
  const [, from, to, step] = /^(-?\d+|[a-z])\.\.(-?\d+|[a-z])(?:\.\.(-?\d+))?$/i.exec(text) ?? [];
  if (from === undefined || to === undefined) return 1;
  const number = (end: string) => (/\d/.test(end) ? Number(end) : end.charCodeAt(0));
  const distance = Math.abs(number(to) - number(from));
  return Math.floor(distance / Math.max(1, Math.abs(Number(step ?? 1)))) + 1;
}
