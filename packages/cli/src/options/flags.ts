import type { FlagSpec } from '../command.js';
import { UsageError } from '../terminal/outcome.js';
import { formatCount, parseSize } from '../terminal/size.js';

/** An option whose value is checked. */
export interface Flag<Type extends 'number' | 'string', Value> extends FlagSpec {
  readonly type: Type;
  readonly requiresArg: true;
  readonly coerce: (given: unknown) => Value;
}

interface Limits {
  readonly from?: number;
  readonly to?: number;
}

/** An option that takes a whole number, from 1 unless `limits` differ. */
export function wholeNumber(
  flag: string,
  describe: string,
  limits: Limits & { readonly default: number },
): Flag<'number', number> & { readonly default: number };
export function wholeNumber(flag: string, describe: string, limits?: Limits): Flag<'number', number>;
export function wholeNumber(
  flag: string,
  describe: string,
  limits: Limits & { readonly default?: number } = {},
): Flag<'number', number> {
  const { from = 1, to = Number.MAX_SAFE_INTEGER, ...rest } = limits;
  const range = to === Number.MAX_SAFE_INTEGER ? `of ${from} or more` : `from ${from} to ${formatCount(to)}`;
  const coerce = (given: unknown): number => {
    const value = once(flag, given);
    if (Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to) return value as number;
    throw new UsageError(`${flag} takes a whole number ${range}${andNot(given)}.`);
  };
  return { type: 'number', requiresArg: true, describe, ...rest, coerce };
}

/** The given value, for an error. If it was text instead of a number, the text is no longer known. */
function andNot(given: unknown): string {
  return Number.isNaN(given) ? '' : `, not "${given}"`;
}

/** An option that takes a number of milliseconds, 0 or more. */
export function milliseconds(flag: string, describe: string): Flag<'number', number> {
  const coerce = (given: unknown): number => {
    const value = once(flag, given);
    if (typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY) return value;
    throw new UsageError(`${flag} takes a number of milliseconds of 0 or more${andNot(given)}.`);
  };
  return { type: 'number', requiresArg: true, group: 'Measurement', placeholder: 'MS', describe, coerce };
}

/** An option that takes a number of bytes: `256MB`, `64MiB` or `1000`. */
export function size(flag: string, describe: string): Flag<'string', number> {
  const coerce = (given: unknown): number => {
    const bytes = parseSize(String(once(flag, given)));
    if (bytes !== undefined && bytes > 0) return bytes;
    throw new UsageError(`${flag} takes a size such as 256MB, 64MiB or a number of bytes, not "${given}".`);
  };
  return { type: 'string', requiresArg: true, placeholder: 'SIZE', describe, coerce };
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** An option that takes a duration such as `30d`, `12h` or `90s`. Its value is in milliseconds. */
export function duration(flag: string, describe: string): Flag<'string', number> {
  const coerce = (given: unknown): number => {
    const match = /^(\d*\.?\d+)\s*([smhdw])$/.exec(String(once(flag, given)).trim());
    if (match !== null) return Math.round(Number(match[1]) * UNITS_MS[match[2]!]!);
    throw new UsageError(`${flag} takes a time such as 30d, 12h, 15m or 90s, not "${given}".`);
  };
  return { type: 'string', requiresArg: true, placeholder: 'TIME', describe, coerce };
}

/** An option that takes a share of a whole: `0.01` or `1%`. A bare 1 is rejected, since it could mean either 1 % or everything. */
export function share(flag: string, describe: string): Flag<'string', number> {
  const coerce = (given: unknown): number => {
    const match = /^(\d*\.?\d+)\s*(%?)$/.exec(String(once(flag, given)).trim());
    const isPercent = match?.[2] === '%';
    const value = match === null ? Number.NaN : Number(match[1]) / (isPercent ? 100 : 1);
    if (value >= 0 && (isPercent ? value <= 1 : value < 1)) return value;
    throw new UsageError(`${flag} takes a percentage such as 1%, or a number below 1 such as 0.01, not "${given}".`);
  };
  return { type: 'string', requiresArg: true, placeholder: 'PERCENT', describe, coerce };
}

/** The value of an option. yargs makes an array of it if the option is given more than once. */
function once(flag: string, given: unknown): unknown {
  if (Array.isArray(given)) throw new UsageError(`${flag} is given more than once.`);
  return given;
}

/** `--workers` of commands that only read. */
export const WORKERS_FLAG = {
  ...wholeNumber('--workers', 'Number of worker threads', { to: 1024 }),
  group: 'Performance',
  defaultDescription: 'one per core',
} as const;
