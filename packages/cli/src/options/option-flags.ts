import type { OptionEntry, OptionValue } from '@shardtool/writer/option-table';
import type { Options } from 'yargs';
import { UsageError } from '../terminal/outcome.js';
import { share, size, wholeNumber } from './flags.js';

type Kebab<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `-${Lowercase<First>}`}${Kebab<Rest>}`
  : '';
/** What the flag of an option is parsed to. */
type Parsed<Entry extends OptionEntry> = Entry extends { kind: 'list' } ? string : OptionValue<Entry>;
type Flags<Entries> = {
  readonly [Name in keyof Entries & string as Kebab<Name>]: Entries[Name] extends OptionEntry
    ? Options & { readonly coerce: (given: never) => Parsed<Entries[Name]> }
    : never;
};

/** The flags of a table of options: `maxShardBytes` is `--max-shard-bytes`. What is left out stays undefined. */
export function flagsOf<Entries extends Readonly<Record<string, OptionEntry>>>(entries: Entries): Flags<Entries> {
  const flags = Object.entries(entries).map(([name, entry]) => [kebab(name), flagOf(`--${kebab(name)}`, entry)]);
  return Object.fromEntries(flags) as Flags<Entries>;
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function flagOf(flag: string, entry: OptionEntry): Options {
  const shown = entry.shown === undefined ? shownDefault(entry) : entry.shown;
  return { ...parsing(flag, entry), describe: entry.help, ...(shown !== null && { defaultDescription: shown }) };
}

function parsing(flag: string, entry: OptionEntry): Options {
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
        ...{ type: 'string', array: true, requiresArg: true },
        ...(entry.isJoined && { coerce: (given: readonly string[]) => given.flatMap((text) => text.split(',')) }),
      };
    case 'text':
    case 'list':
    case 'path':
      return { type: 'string', requiresArg: true };
  }
}

/** `wids,dali`, or `wids` and `dali` behind two flags. */
function words(flag: string, given: readonly string[], values: readonly string[]): string[] {
  const asked = [...new Set(given.flatMap((text) => text.split(',')))];
  const wrong = asked.find((word) => !values.includes(word));
  if (wrong === undefined) return asked;
  const list = `${values.slice(0, -1).join(', ')} and ${values.at(-1)}`;
  throw new UsageError(`${flag} takes ${list}, with commas between them, and not "${wrong}".`);
}

function shownDefault(entry: OptionEntry): string | null {
  if (!('default' in entry) || entry.default === undefined || entry.default === '') return null;
  if (Array.isArray(entry.default)) return null;
  if (entry.kind === 'bytes') return `${Number(entry.default) / 2 ** 20}MiB`;
  if (entry.kind === 'share') return `${Number(entry.default) * 100}%`;
  return String(entry.default);
}
