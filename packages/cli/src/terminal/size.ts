export { countOf, formatCount, parseSize } from '@shardtool/base/text';

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
