import { type AnyCommand, isFamily } from './command.js';
import { COMMAND_NAMES, findCommand, type NamedCommand } from './commands/all.js';
import { completionsFor } from './completion/completions.js';
import { commandHelp, type HelpLayout, toolHelp } from './help/render.js';
import { allFlags } from './options/general-flags.js';
import { useStorageFlags } from './options/storage-flags.js';
import { namesOf, parseCommand } from './parse-command.js';
import { setLogFormat } from './terminal/log.js';
import { print, UsageError } from './terminal/outcome.js';
import { paintFor } from './terminal/style.js';
import { version } from './version.js';

/** The first word of a request of a shell for completions: then the shell, and the words typed so far. */
export const COMPLETE = '__complete';

/** Longer lines are hard to read. */
const WIDEST_HELP = 110;

/**
 * Runs the command that the words `typed` name. Errors go to `fail`, with the names of the options of the command in kebab case.
 */
export async function runCli(
  typed: readonly string[],
  fail: (error: unknown, flags: readonly string[]) => Promise<void>,
): Promise<void> {
  if (typed[0] === COMPLETE) return print(completionsFor(typed.slice(2), typed[1] ?? ''));
  if (isVersionAsked(typed)) return print(version);
  const words = typed[0] === 'help' ? [...typed.slice(1), '--help'] : typed;
  const named = findCommand(words);
  const asked = helpAsked(words);
  if (asked !== null && (named !== null || words[0]!.startsWith('-'))) return showHelp(named, asked);
  let flags: readonly string[] = [];
  try {
    if (named === null || isFamily(named.command)) return await refuse(words, named);
    const { name, command } = named;
    flags = namesOf(allFlags(command));
    const given = await parseCommand(name, command, words.slice(name.split(' ').length)).catch((error) => {
      if (error instanceof UsageError) error.message += ` See "shardtool ${name} --help".`;
      throw error;
    });
    setLogFormat(given['log-format'] as 'text' | 'json');
    await useStorageFlags(given);
    await command.handler(given as never);
  } catch (error) {
    await fail(error, flags);
  }
}

function isVersionAsked([first]: readonly string[]): boolean {
  return first === '--version' || first === '-V';
}

/** The kind of help that the words request; null if they request no help. */
function helpAsked(words: readonly string[]): 'short' | 'long' | null {
  const end = words.indexOf('--');
  const before = words.slice(0, end < 0 ? undefined : end);
  if (before.includes('--help')) return 'long';
  return before.includes('-h') ? 'short' : null;
}

function showHelp(named: NamedCommand | null, asked: 'short' | 'long'): void {
  process.stdout.write(helpText(named, { ...layoutFor(process.stdout), isShort: asked === 'short' }));
}

function helpText(named: NamedCommand | null, layout: HelpLayout): string {
  return named === null ? toolHelp(layout) : commandHelp(named, layout);
}

function layoutFor(stream: NodeJS.WriteStream): Omit<HelpLayout, 'isShort'> {
  return { columns: Math.min(WIDEST_HELP, stream.columns || 100), paint: paintFor(stream) };
}

/** Handles words that name no command, or only a family. Without any words, it prints help to standard error, with the exit code of a usage error. */
async function refuse(words: readonly string[], family: NamedCommand | null): Promise<void> {
  const rest = family === null ? words : words.slice(1);
  if (rest.length === 0) {
    process.stderr.write(helpText(family, { ...layoutFor(process.stderr), isShort: true }));
    process.exitCode = 2;
    return;
  }
  const { didYouMean } = await import('@shardtool/base');
  const [word] = rest as [string];
  const names = family === null ? COMMAND_NAMES : subcommandsOf(family.command);
  const full = family === null ? '' : `${family.name} `;
  const see = `See "shardtool ${full}--help".`;
  if (word.startsWith('-')) {
    throw new UsageError(`Expected a command before ${word}, such as "shardtool ${full}${names[0]}". ${see}`);
  }
  throw new UsageError(`Unknown command "${full}${word}"${didYouMean(word, names) || '.'} ${see}`);
}

function subcommandsOf(command: AnyCommand): string[] {
  return isFamily(command) ? command.commands.map(({ name }) => name) : [];
}
