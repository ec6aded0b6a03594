/**
 * How many texts a pattern with braces stands for: `{a,b}-{1..3}` for 6. Counts and expands nothing, since thirty pairs of
 * braces stand for a thousand million texts; infinite where the number is beyond all bounds.
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
  /** Position of its brace. */
  readonly at: number;
  /** Of the choices that are complete, and of the one in hand. */
  sum: number;
  product: number;
  hasComma: boolean;
}

/** `1..100`, `a..z`, `1..100..5`; 1 for anything else. */
function range(text: string): number {
  const [, from, to, step] = /^(-?\d+|[a-z])\.\.(-?\d+|[a-z])(?:\.\.(-?\d+))?$/i.exec(text) ?? [];
  if (from === undefined || to === undefined) return 1;
  const number = (end: string) => (/\d/.test(end) ? Number(end) : end.charCodeAt(0));
  const distance = Math.abs(number(to) - number(from));
  return Math.floor(distance / Math.max(1, Math.abs(Number(step ?? 1)))) + 1;
}
