import { didYouMean } from '../did-you-mean.js';
import { OptionError } from '../errors.js';
import { type Sentence, sentence, withCodeNames } from '../sentence.js';
import { parseSize } from '../size.js';
import type { CheckedValues, OptionDefaults, OptionEntry, OptionTable } from './entry.js';

/** How errors name the owner of the options. */
export interface OptionOwner {
  /** `A loader`. */
  readonly name: string;
  /** `The loader's option batchSize is invalid`. */
  readonly wrong: (option: string) => Sentence;
  /** Names that other software uses for options, in lower case and without `_`, with the option to use instead. */
  readonly foreignNames?: Readonly<Record<string, string>>;
}

/** Check of the value of an entry of kind `own`. */
export type OwnChecks = Readonly<Record<string, (value: unknown) => boolean>>;

/** Default values of options. */
export function defaultsOf<Entries extends OptionTable>(entries: Entries): OptionDefaults<Entries> {
  const given = Object.entries(entries).flatMap(([name, entry]) =>
    'default' in entry && entry.default !== undefined ? [[name, copied(entry.default)]] : [],
  );
  return Object.fromEntries(given) as OptionDefaults<Entries>;
}

/**
 * Checks options against their table, and fills in defaults for those that are omitted or undefined. `own` has a check
 * for each entry of kind `own`. Throws {@link OptionError} for an invalid value or an unknown name, with the most
 * similar known name.
 */
export function checkGiven<Entries extends OptionTable>(
  owner: OptionOwner,
  entries: Entries,
  given: unknown,
  own: OwnChecks = {},
): CheckedValues<Entries> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OptionError({}, `${owner.name} takes options as an object, not ${shown(given)}.`);
  }
  const names = Object.keys(entries);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(entries, name));
  if (unknown !== undefined) {
    throw new OptionError({}, sentence`${owner.name} has no option "${unknown}"${hintOn(unknown, names, owner)}`);
  }
  const checked = Object.entries(entries).map(([name, entry]) => {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value === undefined) return [name, 'default' in entry ? copied(entry.default) : undefined];
    const at = faultIn(entry, value, own[name]);
    if (at === null) return [name, entry.kind === 'bytes' ? bytesOf(value) : value];
    const [place, wrong] = at === 'whole' ? [name, value] : [`${name}.${at}`, (value as readonly unknown[])[at]];
    const must = at === 'whole' ? allowed(entry) : allowedPart(entry);
    const reason = refusalOf(entry, wrong);
    if (reason !== null) throw new OptionError({}, sentence`${owner.wrong(place)}: ${withCodeNames(reason)}`);
    throw new OptionError({}, sentence`${owner.wrong(place)}: it ${withCodeNames(must)}, not ${shown(wrong)}.`);
  });
  return Object.fromEntries(checked);
}

/** Why an entry does not have a value that users try. Null if nothing special is known about the value. */
function refusalOf({ refused = {} }: OptionEntry, value: unknown): string | null {
  return typeof value === 'string' && Object.hasOwn(refused, value) ? refused[value]! : null;
}

function hintOn(unknown: string, names: readonly string[], { foreignNames = {} }: OptionOwner): Sentence {
  const plain = unknown.replace(/[-_]/g, '').toLowerCase();
  if (Object.hasOwn(foreignNames, plain)) return withCodeNames(`: set ${foreignNames[plain]}.`);
  return withCodeNames(didYouMean(unknown, names) || `; there are ${names.join(', ')}.`);
}

/** Describes the allowed values, to follow "it": `is a whole number from 1 on`. */
export function allowed(entry: OptionEntry): string {
  switch (entry.kind) {
    case 'switch':
      return 'is true or false';
    case 'choice':
      return `is ${alternatives(entry.values)}`;
    case 'choices':
      return `is a list of ${alternatives(entry.values)}`;
    case 'whole':
    case 'bytes': {
      const { from, to, isEndless } = entry;
      const what = entry.kind === 'bytes' ? 'a number of bytes, or a text such as "256MiB",' : 'a whole number';
      const range = to === undefined ? `from ${from} on` : `from ${from} to ${to.toLocaleString('en-US')}`;
      return `is ${what} ${range}${isEndless ? ', or Infinity' : ''}`;
    }
    case 'seconds':
      return `is more than 0 and at most ${entry.to.toLocaleString('en-US')} seconds`;
    case 'share':
      return 'is a share from 0 to 1';
    case 'text':
      return entry.must ?? 'is text';
    case 'texts':
      return 'is a list of texts';
    case 'classes':
      return 'is a list of classes, text for a name and a whole number for a class number';
    case 'list':
      return `is the path of a text file, or a list of ${entry.least ? `${entry.least} or more texts` : 'texts'}`;
    case 'path':
      return 'is a path';
    case 'own':
      return entry.must;
  }
}

/** Kinds of the items of a list. */
function allowedPart(entry: OptionEntry): string {
  switch (entry.kind) {
    case 'choices':
      return `is ${alternatives(entry.values)}`;
    case 'texts':
      return entry.must ?? 'is text, and not empty';
    case 'classes':
      return 'is the name of a class, or its number';
    default:
      return 'is text, and not empty';
  }
}

/** Returns null if the option may have the value. Otherwise returns the invalid item of a list, or `whole`. */
function faultIn(entry: OptionEntry, value: unknown, own: ((value: unknown) => boolean) | undefined) {
  const whole = (isRight: boolean) => (isRight ? null : ('whole' as const));
  const each = (isRight: (part: unknown) => boolean) => {
    if (!Array.isArray(value)) return 'whole';
    const at = value.findIndex((part) => !isRight(part));
    return at < 0 ? null : at;
  };
  switch (entry.kind) {
    case 'switch':
      return whole(typeof value === 'boolean');
    case 'choice':
      return whole(entry.values.includes(value as string));
    case 'choices':
      return each((part) => entry.values.includes(part as string));
    case 'whole':
    case 'bytes': {
      const number = entry.kind === 'bytes' ? bytesOf(value) : value;
      return whole(isWhole(number, entry.from, entry.to) || (entry.isEndless === true && value === Infinity));
    }
    case 'seconds':
      return whole(typeof value === 'number' && value > 0 && value <= entry.to);
    case 'share':
      return whole(typeof value === 'number' && value >= 0 && value <= 1);
    case 'text':
      return whole(isText(value, entry.pattern));
    case 'texts':
      return each((part) => isText(part, entry.pattern) && part !== '');
    case 'classes':
      return each((part) => typeof part === 'string' || Number.isSafeInteger(part));
    case 'list':
      if (!Array.isArray(value)) return whole(isText(value) && value !== '');
      return value.length < (entry.least ?? 0) ? 'whole' : each((part) => isText(part) && part !== '');
    case 'path':
      return whole(isText(value) && value !== '');
    case 'own':
      return whole(own!(value));
  }
}

/** Converts a size to a number of bytes. Returns undefined for a text that is not a size. */
function bytesOf(value: unknown): unknown {
  return typeof value === 'string' ? parseSize(value) : value;
}

function isWhole(value: unknown, from: number, to = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to;
}

function isText(value: unknown, pattern = /^/): boolean {
  return typeof value === 'string' && pattern.test(value);
}

function alternatives(values: readonly string[]): string {
  const quoted = values.map((value) => `"${value}"`);
  return quoted.length === 1 ? quoted[0]! : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

/** A short form of a value for a message. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'function') return 'a function';
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : String(value);
}

function copied(value: unknown): unknown {
  return Array.isArray(value) ? [...value] : value;
}
