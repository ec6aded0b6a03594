import { isNamedAsImage } from '@shardtool/format';

/**
 * The fields that the patterns match. A pattern with `*` matches only fields that are named like an image. The order is that
 * of the patterns, and within a pattern that of the numbers in the names: `img.2.jpg` is before `img.10.jpg`.
 */
export function matchingFields(fields: readonly string[], patterns: readonly string[]): string[] {
  const found = new Set<string>();
  for (const pattern of patterns) {
    const matching = fields.filter((field) => field === pattern || (matches(pattern, field) && isNamedAsImage(field)));
    for (const field of matching.sort(byNumbers)) found.add(field);
  }
  return [...found];
}

/** Whether a name matches a pattern, in which `*` stands for any characters. */
function matches(pattern: string, name: string): boolean {
  if (!pattern.includes('*')) return false;
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let rest = name.slice(first.length, name.length - last.length);
  for (const part of others) {
    const at = rest.indexOf(part);
    if (at < 0) return false;
    rest = rest.slice(at + part.length);
  }
  return true;
}

/** Compares names by their characters, and numbers in them by their value. */
function byNumbers(a: string, b: string): number {
  const parts = [a, b].map((name) => name.split(/(\d+)/));
  const [left, right] = parts as [string[], string[]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [one, other] = [left[i]!, right[i]!];
    // Every second part is a number. Compared as texts without zeros in front, it may have any length.
    const [x, y] = i % 2 === 1 ? [digitsOf(one), digitsOf(other)] : [one, other];
    if (x !== y) return i % 2 === 1 && x.length !== y.length ? x.length - y.length : x < y ? -1 : 1;
  }
  return left.length - right.length || (a < b ? -1 : Number(a > b));
}

function digitsOf(number: string): string {
  return number.replace(/^0+(?=\d)/, '');
}
