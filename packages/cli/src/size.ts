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

/** Bytes of `256MB`, `64MiB`, `1.5 GB` or `1000`; undefined for what is no size. */
export function parseSize(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const unit = match === null ? undefined : UNITS.get(match[2]!.toLowerCase());
  return match === null || unit === undefined ? undefined : Math.round(Number(match[1]) * unit);
}

/** 1,234,567 bytes as `1.2 MB`. */
export function formatSize(bytes: number): string {
  let value = Math.round(bytes);
  let unit = 'B';
  for (const larger of ['kB', 'MB', 'GB', 'TB', 'PB']) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  return `${unit === 'B' || value >= 9.95 ? value.toFixed(0) : value.toFixed(1)} ${unit}`;
}

/** 1234567 as `1,234,567`. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 shard`, `1,281 shards`. The plural ends in s unless it is given. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}
