import type { OptionEntry, OptionValue } from '@shardtool/base';
import type { FlagSpec } from '../command.js';
import { kebab } from '../kebab.js';
import { UsageError } from '../terminal/outcome.js';
import { share, size, wholeNumber } from './flags.js';

type Kebab<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `-${Lowercase<First>}`}${Kebab<Rest>}`
  : '';
/** Type of a parsed flag. */
type Parsed<Entry extends OptionEntry> = Entry extends { kind: 'list' }
  ? string
  : Entry extends { kind: 'bytes' }
    ? number
    : OptionValue<Entry>;
/** The flag of an option: its own, or its name in kebab case. */
type FlagName<Name extends string, Entry> = Entry extends { readonly flag: infer Flag extends string }
  ? Flag
  : Kebab<Name>;
type Flags<Entries> = {
  readonly [Name in keyof Entries & string as FlagName<Name, Entries[Name]>]: Entries[Name] extends OptionEntry
    ? FlagSpec & { readonly coerce: (given: never) => Parsed<Entries[Name]> }
    : never;
};
type Entry = OptionEntry & { readonly flag?: string };

/** The flags of a table of options: `maxShardBytes` is `--max-shard-bytes`. Options that the user omits stay undefined. */
export function flagsOf<Entries>(entries: Entries & Readonly<Record<string, Entry>>): Flags<Entries> {
  const named = Object.entries<Entry>(entries).map(([name, entry]) => [entry.flag ?? kebab(name), entry] as const);
  return Object.fromEntries(named.map(([name, entry]) => [name, flagOf(`--${name}`, entry)])) as Flags<Entries>;
}

/** A flag for which the command has its own default. */
export function withDefault<Given extends FlagSpec, Value>(flag: Given, value: Value) {
  return { ...flag, default: value, defaultDescription: String(value) };
}

function flagOf(flag: string, entry: OptionEntry): FlagSpec {
  const shown = entry.shown === undefined ? shownDefault(entry) : entry.shown;
  const { group = 'General', placeholder = PLACEHOLDERS[entry.kind], isCommon = false } = entry;
  return {
    ...parsing(flag, entry),
    describe: asTyped(entry.help),
    group,
    isCommon,
    ...(placeholder !== undefined && { placeholder }),
    ...(shown !== null && { defaultDescription: asTyped(shown) }),
  };
}

/** Converts a text of the table for the terminal: `batchSize` becomes --batch-size, and expressions are quoted. */
function asTyped(text: string): string {
  return text.replace(/`([^`]+)`/g, (_, code: string) =>
    /^[a-z]+[A-Z]/.test(code) ? `--${kebab(code)}` : code.includes(' ') ? `"${code}"` : code,
  );
}

/** Placeholders of values in help, by kind. */
const PLACEHOLDERS: Partial<Record<OptionEntry['kind'], string>> = {
  whole: 'N',
  bytes: 'SIZE',
  seconds: 'SECONDS',
  share: 'PERCENT',
  text: 'TEXT',
  texts: 'TEXT',
  classes: 'CLASSES',
  list: 'FILE',
  path: 'FILE',
};

function parsing(flag: string, entry: OptionEntry): Omit<FlagSpec, 'describe'> {
  switch (entry.kind) {
    case 'switch':
      return { type: 'boolean' };
    case 'choice':
      return { choices: entry.values, requiresArg: true };
    case 'choices':
      return {
        type: 'string',
        array: true,
        requiresArg: true,
        coerce: (given: readonly string[]) => words(flag, given, entry.values),
      };
    case 'whole':
      return wholeNumber(flag, entry.help, { from: entry.from, ...(entry.to !== undefined && { to: entry.to }) });
    case 'seconds':
      return wholeNumber(flag, entry.help, { to: entry.to });
    case 'bytes':
      return size(flag, entry.help);
    case 'share':
      return share(flag, entry.help);
    case 'texts':
      return {
        type: 'string',
        array: true,
        requiresArg: true,
        ...(entry.isJoined && { coerce: (given: readonly string[]) => given.flatMap((text) => text.split(',')) }),
      };
    case 'classes':
      return { type: 'string', array: true, requiresArg: true };
    case 'text':
    case 'list':
    case 'path':
    case 'own':
      return { type: 'string', requiresArg: true };
  }
}

/** `wids,dali`, or `wids` and `dali` with two flags. */
function words(flag: string, given: readonly string[], values: readonly string[]): string[] {
  const asked = [...new Set(given.flatMap((text) => text.split(',')))];
  const wrong = asked.find((word) => !values.includes(word));
  if (wrong === undefined) return asked;
  const list = `${values.slice(0, -1).join(', ')} and ${values.at(-1)}`;
  throw new UsageError(`${flag} takes ${list}, separated by commas, not "${wrong}".`);
}

function shownDefault(entry: OptionEntry): string | null {
  if (!('default' in entry) || entry.default === undefined || entry.default === '') return null;
  if (Array.isArray(entry.default)) return null;
  if (entry.kind === 'bytes') return `${Number(entry.default) / 2 ** 20}MiB`;
  if (entry.kind === 'share') return `${Number(entry.default) * 100}%`;
  return String(entry.default);
}
