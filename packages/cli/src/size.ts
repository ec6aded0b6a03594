import { UsageError } from './outcome.js';

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** Bytes of `256MB`, `64MiB`, `1.5 GB` or `1000`. Throws {@link UsageError} that shows how sizes are written. */
export function parseSize(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const unit = match === null ? undefined : UNITS[match[2]!.toLowerCase()];
  if (match === null || unit === undefined) {
    throw new UsageError(`"${text}" is not a size; write 256MB, 64MiB or a number of bytes.`);
  }
  return Math.round(Number(match[1]) * unit);
}

/** 1,234,567 bytes as `1.2 MB`. */
export function formatSize(bytes: number): string {
  const step = Math.min(4, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${['B', 'kB', 'MB', 'GB', 'TB'][step]}`;
}

/** 1234567 as `1,234,567`. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
