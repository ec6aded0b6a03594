import yargs from 'yargs';
import type { Command, FlagSpec, FlagTable } from './command.js';
import { usageOf } from './help/usage.js';
import { kebab } from './kebab.js';
import { allFlags } from './options/general-flags.js';
import { UsageError } from './terminal/outcome.js';

/** Marks a word after `--`, which is never an option. No word of a command line can begin like this. */
const PLAIN = '\0';

/** The table of options for yargs: names and types, without checks. */
type Given = Record<string, unknown>;

/** All names of the options of a command, in kebab case, with their short forms. */
export function namesOf(flags: FlagTable): string[] {
  return Object.entries(flags).flatMap(([name, { alias }]) => [name, ...[alias ?? []].flat()]);
}

/**
 * Values of the arguments and options of a command, by name, from the words after its name. Throws {@link UsageError} for words
 * that the command does not take.
 */
export async function parseCommand(name: string, command: Command, words: readonly string[]): Promise<Given> {
  const flags = allFlags(command);
  await refuseUnknownFlag(words, flags);
  const given = await readWords(words, flags);
  for (const [flag, spec] of Object.entries(flags)) check(flag, spec, given);
  return { ...given, ...argumentsOf(name, command, given._ as string[]) };
}

/** Parses the words with yargs, without its checks. {@link parseCommand} checks them, with its own messages. */
async function readWords(words: readonly string[], flags: FlagTable): Promise<Given> {
  const options = Object.entries(flags).map(([name, spec]) => {
    const { choices, demandOption, describe, group, placeholder, isCommon, defaultDescription, ...rest } = spec;
    return [name, choices === undefined ? rest : { type: 'string' as const, ...rest }] as const;
  });
  const given = await yargs(marked(words))
    // `--include a b` would take b too, and a key such as 0001 would become a number.
    .parserConfiguration({ 'greedy-arrays': false, 'parse-positional-numbers': false })
    .updateStrings({ 'Not enough arguments following: %s': '--%s needs a value.' })
    .options(Object.fromEntries(options))
    .help(false)
    .version(false)
    .exitProcess(false)
    .fail((message, error) => {
      // yargs wraps errors of a `coerce` function in its own errors.
      if (error !== undefined && error.name !== 'YError') throw error;
      throw new UsageError(message.replace(/\s*\n\s*/g, ' '));
    })
    .parseAsync();
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, unmarked(value)]));
}

/** yargs does not treat words after `--` as arguments: it receives them as words that are not options. */
function marked(words: readonly string[]): string[] {
  const end = words.indexOf('--');
  return end < 0 ? [...words] : [...words.slice(0, end), ...words.slice(end + 1).map((word) => PLAIN + word)];
}

function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  return typeof value === 'string' && value.startsWith(PLAIN) ? value.slice(1) : value;
}

/** Checks the properties that every kind of option has in a table: repetition, allowed values, and whether it is required. */
function check(flag: string, { array, choices, demandOption, placeholder }: FlagSpec, given: Given): void {
  const value = given[flag];
  if (Array.isArray(value) && array !== true) throw new UsageError(`--${flag} is given more than once.`);
  if (demandOption === true && value === undefined)
    throw new UsageError(`Missing option: --${flag} <${placeholder ?? 'VALUE'}>.`);
  if (choices === undefined || value === undefined) return;
  const wrong = [value].flat().find((one) => !choices.includes(one as string));
  if (wrong !== undefined) {
    throw new UsageError(`Invalid value ${JSON.stringify(wrong)} for --${flag}. Choose one of: ${choices.join(', ')}.`);
  }
}

/** The positional arguments by name. */
function argumentsOf(name: string, command: Command, words: readonly string[]): Given {
  const specs = Object.entries(command.arguments);
  const last = specs.at(-1);
  const isEndless = last?.[1].array === true;
  if (!isEndless && words.length > specs.length) {
    const word = words[specs.length]!;
    const hint = 'name' in allFlags(command) ? `; did you mean --name ${word}?` : '.';
    throw new UsageError(`Unexpected argument: ${word}${hint} Usage: ${usageOf(name, command)}.`);
  }
  const missing = specs.slice(words.length).filter(([, { demandOption }]) => demandOption === true);
  if (missing.length > 0) {
    const names = missing.map(([argument]) => `<${argument}>`).join(' ');
    throw new UsageError(
      `Missing argument${missing.length > 1 ? 's' : ''}: ${names}. Usage: ${usageOf(name, command)}.`,
    );
  }
  const values = specs.map(([argument, { array, choices }], i) => {
    const value = array === true ? words.slice(i) : words[i];
    if (choices !== undefined && value !== undefined && !choices.includes(value as string)) {
      throw new UsageError(`Invalid value "${value}" for <${argument}>. Choose one of: ${choices.join(', ')}.`);
    }
    return [argument, value];
  });
  return Object.fromEntries(values);
}

/** Throws {@link UsageError} for the first option on the command line that the command does not have. */
async function refuseUnknownFlag(words: readonly string[], flags: FlagTable): Promise<void> {
  const end = words.indexOf('--');
  const typed = words.slice(0, end < 0 ? undefined : end).flatMap((word) => /^--[^=]+|^-[A-Za-z].*/.exec(word) ?? []);
  const switches = Object.entries(flags).filter(([, { type }]) => type === 'boolean');
  const taken = [...namesOf(flags), ...switches.map(([name]) => `no-${name}`)];
  const known = new Set(taken.map((name) => (name.length === 1 ? `-${name}` : `--${name}`)));
  const flag = typed.find((one) => !known.has(kebab(one)));
  if (flag === undefined) return;
  const { didYouMean } = await import('@shardtool/base');
  const names = [...known].filter((name) => name.startsWith('--'));
  // A word such as -x/1 may be a name, since no short option takes a value.
  const isName = !flag.startsWith('--') && flag.length > 2;
  const remedy = isName ? '. Put "--" before a key or file name that begins with "-".' : didYouMean(flag, names) || '.';
  throw new UsageError(`Unknown option ${flag}${remedy}`);
}
