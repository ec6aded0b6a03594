import yargs, { type MiddlewareFunction } from 'yargs';
import { completionCommand } from './commands/completion.js';
import { benchCommand } from './commands/look/bench.js';
import { cacheCommand } from './commands/look/cache.js';
import { catCommand } from './commands/look/cat.js';
import { inspectCommand } from './commands/look/inspect.js';
import { lsCommand } from './commands/look/ls.js';
import { planCommand } from './commands/look/plan.js';
import { previewCommand } from './commands/look/preview.js';
import { statsCommand } from './commands/look/stats.js';
import { viewCommand } from './commands/look/view.js';
import { commitCommand } from './commands/shards/commit.js';
import { convertCommand } from './commands/shards/convert.js';
import { indexCommand } from './commands/shards/index.js';
import { packCommand } from './commands/shards/pack.js';
import { unpackCommand } from './commands/shards/unpack.js';
import { verifyCommand } from './commands/shards/verify.js';
import { mergeCommand } from './commands/views/merge.js';
import { overlayCommand } from './commands/views/overlay.js';
import { relabelCommand } from './commands/views/relabel.js';
import { splitCommand } from './commands/views/split.js';
import { subsetCommand } from './commands/views/subset.js';
import { kebab } from './options/option-flags.js';
import { STORAGE_FLAGS, useStorageFlags } from './options/storage-flags.js';
import { UsageError } from './terminal/outcome.js';
import { version } from './version.js';

const COMMANDS = [
  packCommand,
  commitCommand,
  lsCommand,
  statsCommand,
  catCommand,
  unpackCommand,
  verifyCommand,
  inspectCommand,
  indexCommand,
  convertCommand,
  overlayCommand,
  splitCommand,
  subsetCommand,
  relabelCommand,
  mergeCommand,
  planCommand,
  benchCommand,
  cacheCommand,
  previewCommand,
  viewCommand,
  completionCommand,
];

/** The first word of each. */
export const COMMAND_NAMES: readonly string[] = COMMANDS.map(({ name }) => name);

/** What yargs says of a command line that is not right, in our words. */
const MESSAGES = {
  'Did you mean %s?': 'There is no such command; did you mean "%s"?',
  'Not enough arguments following: %s': '--%s takes a value.',
  'Not enough non-option arguments: got %s, need at least %s': plural('Arguments given: %s, needed: %s.'),
  'Unknown argument: %s': plural('It does not take this: %s.'),
  'Invalid values:': 'Wrong value:',
  'Argument: %s, Given: %s, Choices: %s': '--%s %s; it may be %s.',
};

/** What is used of yargs beyond its types. */
interface Instance {
  getOptions(): { readonly key: object; readonly alias: Readonly<Record<string, readonly string[]>> };
  getInternalMethods(): { getUsageInstance(): { cacheHelpMessage: () => void } };
}

/**
 * Runs the command that the words `typed` name. Whatever is thrown goes to `fail`, with the flags of the command in kebab case.
 */
export async function runCli(
  typed: readonly string[],
  fail: (error: unknown, flags: readonly string[]) => Promise<void>,
): Promise<void> {
  const words = typed[0] === 'help' ? [...typed.slice(1), '--help'] : typed;
  /** Of the command, once yargs has read them. */
  let flags: readonly string[] = [];
  const noteFlags = (_given: unknown, instance: Instance): void => {
    flags = flagsOf(instance);
    // It would lay out all of the help, which nobody sees, before the command has anything to do.
    instance.getInternalMethods().getUsageInstance().cacheHelpMessage = () => undefined;
  };
  const cli = yargs(withoutDashes(words))
    .scriptName('shardtool')
    .usage('$0 COMMAND\n\nTurns many small image files into large shards, and feeds them to training.')
    // `--include a b` would otherwise take b too.
    .parserConfiguration({ 'greedy-arrays': false })
    .updateStrings(MESSAGES)
    .command(COMMANDS)
    .option('verbose', { type: 'boolean', default: false, global: true, describe: 'Show the stack of an error' })
    .options(STORAGE_FLAGS)
    .middleware((given) => useStorageFlags(given))
    // Before all checks, so that what fails there knows the flags.
    .middleware(noteFlags as unknown as MiddlewareFunction, true)
    .middleware(restoreDashes, true)
    .demandCommand(1, 'Say what to do.')
    .strict()
    .recommendCommands()
    .check((given, options) => {
      const { array } = options as unknown as { array: string[] };
      const twice = flags.find((flag) => Array.isArray(given[flag]) && !array.includes(flag));
      if (twice !== undefined) throw new UsageError(`--${twice} is given more than once.`);
      return true;
    }, true)
    .version(version)
    .alias({ h: 'help', V: 'version' })
    .wrap(Math.min(110, process.stdout.columns ?? 100))
    .epilogue(
      'Exit codes: 0 done; 1 a fault was found, or the work could not be done; 2 the command is not right, or its source or dataset is ' +
        'not there; 130 and 143 stopped by Ctrl-C (SIGINT) and SIGTERM.',
    )
    .exitProcess(false)
    .fail((message, error) => {
      // Words are counted before the middleware runs, and a flag that there is not takes the next one for its value.
      if (flags.length === 0) flags = flagsOf(cli as unknown as Instance);
      // What a flag's `coerce` throws comes as one of yargs' own errors too.
      if (error !== undefined && error.name !== 'YError') throw error;
      const text = asTyped(message.replace(/\s*\n\s*/g, ' '), cli as unknown as Instance, words);
      throw new UsageError(`${text} ${hint(words)}`);
    });
  try {
    await cli.parseAsync();
  } catch (error) {
    const unknown = error instanceof UsageError ? unknownFlag(words, flags) : null;
    await fail(unknown === null ? error : await noSuchFlag(unknown, words, flags), flags);
  }
}

/** In front of a word behind `--`: no word of a command line can begin so. */
const PLAIN = '\0';

/** yargs does not take what follows `--` for the arguments of a command: it gets these words as words that are no flags. */
function withoutDashes(words: readonly string[]): string[] {
  const end = words.indexOf('--');
  return end < 0 ? [...words] : [...words.slice(0, end), ...words.slice(end + 1).map((word) => PLAIN + word)];
}

function restoreDashes(given: Record<string, unknown>): void {
  const plain = (value: unknown) => (typeof value === 'string' && value.startsWith(PLAIN) ? value.slice(1) : value);
  for (const [name, value] of Object.entries(given))
    given[name] = Array.isArray(value) ? value.map(plain) : plain(value);
}

/** All that a command takes, by every name. */
function flagsOf(instance: Instance): string[] {
  const { key, alias } = instance.getOptions();
  return [...new Set([...Object.keys(key), ...Object.values(alias).flat()])];
}

/** A message with each flag under the name by which it was typed: yargs says `--format` where `--to` was. */
function asTyped(message: string, instance: Instance, words: readonly string[]): string {
  const { alias } = instance.getOptions();
  const isTyped = (name: string) => words.some((word) => word === `--${name}` || word.startsWith(`--${name}=`));
  return message.replace(/--([a-z][a-z-]*)/g, (flag, name: string) => {
    const other = isTyped(name) ? undefined : alias[name]?.find(isTyped);
    return other === undefined ? flag : `--${other}`;
  });
}

/** The first flag on the command line that the command does not have; null where it has all, or is not known. */
function unknownFlag(words: readonly string[], flags: readonly string[]): string | null {
  if (flags.length === 0) return null;
  const end = words.indexOf('--');
  const given = words.slice(0, end < 0 ? undefined : end).flatMap((word) => /^--[^=]+|^-[A-Za-z]/.exec(word) ?? []);
  const known = flags.map((flag) => (flag.length === 1 ? `-${flag}` : `--${flag}`));
  return (
    given.find((flag) => !known.includes(kebab(flag).replace(/^--no-/, '--')) && !known.includes(kebab(flag))) ?? null
  );
}

async function noSuchFlag(flag: string, words: readonly string[], flags: readonly string[]): Promise<UsageError> {
  const { didYouMean } = await import('@shardtool/base');
  const known = flags.filter((name) => name.length > 1).map((name) => `--${name}`);
  const isName = flag.length === 2 && words.some((word) => word.startsWith(flag) && word.length > flag.length);
  const remedy = isName ? '; a key or a file whose name begins so goes behind "--".' : didYouMean(flag, known) || '.';
  return new UsageError(`There is no option ${flag}${remedy} ${hint(words)}`);
}

function hint(words: readonly string[]): string {
  const command = COMMANDS.find(({ name }) => name === words[0]);
  return command === undefined
    ? '"shardtool --help" lists the commands.'
    : `"shardtool ${command.name} --help" says more.`;
}

/** yargs takes two forms of a message that counts something, though its types know one. */
function plural(message: string): string {
  return { one: message, other: message } as unknown as string;
}
