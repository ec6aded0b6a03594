const UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1e3],
  ['mb', 1e6],
  ['gb', 1e9],
  ['tb', 1e12],
  ['kib', 2 ** 10],
  ['mib', 2 ** 20],
  ['gib', 2 ** 30],
  ['tib', 2 ** 40],
]);

/** Number of bytes of a size such as `256MB`, `64MiB`, `1.5 GB` or `1000`. Returns undefined for any other text. */
export function parseSize(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const unit = match === null ? undefined : UNITS.get(match[2]!.toLowerCase());
  return match === null || unit === undefined ? undefined : Math.round(Number(match[1]) * unit);
}
