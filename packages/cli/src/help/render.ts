import { type AnyCommand, COMMAND_GROUPS, type Command, type Example, isFamily } from '../command.js';
import { COMMANDS_BY_GROUP, type NamedCommand } from '../commands/all.js';
import { allFlags } from '../options/general-flags.js';
import { padded, widthOf } from '../terminal/columns.js';
import type { Paint } from '../terminal/style.js';
import { optionsByGroup, optionText } from './option-text.js';
import { usageOf } from './usage.js';
import { NO_BREAK, wrapped } from './wrap.js';

/** How help is laid out. */
export interface HelpLayout {
  /** Columns of the terminal. */
  readonly columns: number;
  readonly paint: Paint;
  /** Only the common options and a few examples (`-h`). */
  readonly isShort: boolean;
}

/** A term of a list, with its meaning. */
interface Entry {
  readonly term: string;
  readonly text: string;
}

/** Column at which the text of a list begins, at most. */
const TEXT_COLUMN = 28;
/** If less room than this is left for the text, it begins on the next line. */
const LEAST_TEXT = 40;
/** With at most this many options, the short help lists all of them. */
const FEW_OPTIONS = 6;
const SHORT_EXAMPLES = 4;
const LONGEST_UNBROKEN = 30;

export const EXIT_CODES: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'done'],
  ['1', 'a fault was found, or the work failed'],
  ['2', 'the command line is invalid, or something that it names does not exist'],
  ['130, 143', 'stopped by Ctrl-C (SIGINT) or SIGTERM'],
];

const VERSION_ENTRY: Entry = { term: '-V, --version', text: 'Show the version' };
const HELP_ENTRY: Entry = { term: '-h, --help', text: 'Show help' };

/** Help of the whole tool: a summary, and the commands by topic. */
export function toolHelp(layout: HelpLayout): string {
  const { paint } = layout;
  const all = COMMAND_GROUPS.flatMap((group) => COMMANDS_BY_GROUP[group]);
  const column = Math.max(...[...all.map(({ name }) => name), VERSION_ENTRY.term].map((term) => term.length)) + 4;
  return joined([
    ['Pack millions of small image files into a few large shards, and stream them into training.'],
    [`${paint('bold', 'Usage:')} shardtool <command> [options]`],
    ...COMMAND_GROUPS.map((group) => [
      paint('bold', `${group}:`),
      ...listLines(COMMANDS_BY_GROUP[group].map(entryOf), layout, column),
    ]),
    [paint('bold', 'Options:'), ...listLines([HELP_ENTRY, VERSION_ENTRY], layout, column)],
    [
      paint('bold', 'First steps:'),
      ...exampleLines(
        [
          ['$0 pack photos shards', 'photos/cat/1.jpg becomes the sample cat/1 of class cat'],
          ['$0 bench shards', 'Images per second, and what limits them'],
          ['$0 pack --help', 'All options of a command; -h lists the common ones'],
        ],
        layout,
      ),
    ],
    [
      paint('bold', 'Exit codes:'),
      ...listLines(
        EXIT_CODES.map(([term, text]) => ({ term, text })),
        layout,
        12,
      ),
    ],
  ]);
}

/** Help of a command, or of a family of commands. */
export function commandHelp({ name, command }: NamedCommand, layout: HelpLayout): string {
  const { paint, isShort, columns } = layout;
  const about = command.details === undefined || isShort ? command.summary : `${command.summary}. ${command.details}`;
  const examples = isShort ? command.examples.slice(0, SHORT_EXAMPLES) : command.examples;
  return joined([
    wrapped(about, columns),
    [`${paint('bold', 'Usage:')} ${usageOf(name, command)}`],
    ...(isFamily(command) ? [subcommandLines(command.commands, layout)] : commandSections(command, layout)),
    examples.length === 0 ? [] : [paint('bold', 'Examples:'), ...exampleLines(examples, layout)],
    isShort && !isFamily(command) ? [paint('dim', `All options: shardtool ${name} --help`)] : [],
  ]);
}

function subcommandLines(commands: readonly Command[], layout: HelpLayout): string[] {
  return [layout.paint('bold', 'Commands:'), ...listLines(commands.map(entryOf), layout, 10)];
}

function commandSections(command: Command, layout: HelpLayout): string[][] {
  const { paint, isShort } = layout;
  const all = allFlags(command);
  const own = Object.keys(command.options).length;
  const isShown = ([name, { isCommon }]: readonly [string, { readonly isCommon?: boolean }]) =>
    !isShort || isCommon === true || (own <= FEW_OPTIONS && name in command.options);
  const flags = Object.fromEntries(Object.entries(all).filter(isShown));
  const entries = (options: readonly [string, (typeof all)[string]][]) =>
    options.map(([name, flag]) => {
      const { term, text, notes } = optionText(name, flag);
      // Long options are aligned, with or without a short form.
      const aligned = term.startsWith('--') ? `    ${term}` : term;
      return {
        term: aligned,
        text: notes.length === 0 ? text : `${text} ${notes.map(noteText).join(' ')}`,
      };
    });
  const positionals = Object.entries(command.arguments).map(([name, { describe, demandOption, choices }]) => ({
    term: demandOption === true ? `<${name}>` : `[${name}]`,
    text: choices === undefined ? describe : `${describe} [values: ${choices.join(', ')}]`,
  }));
  const groups = optionsByGroup(flags);
  return [
    positionals.length === 0 ? [] : [paint('bold', 'Arguments:'), ...listLines(positionals, layout, 14)],
    ...(isShort
      ? [groups.flatMap(([, options]) => options)]
          .filter((options) => options.length > 0)
          .map((options) => [paint('bold', 'Common options:'), ...listLines(entries(options), layout, TEXT_COLUMN)])
      : groups.map(([group, options]) => [
          paint('bold', `${group}:`),
          ...listLines(entries(options), layout, TEXT_COLUMN),
        ])),
  ];
}

/** A short note stays on one line. */
function noteText(note: string): string {
  return `[${note.length > LONGEST_UNBROKEN ? note : note.replaceAll(' ', NO_BREAK)}]`;
}

function entryOf({ name, summary }: AnyCommand): Entry {
  return { term: name, text: summary };
}

/** Terms in a column, each with its text next to it; below it if the term is too long, or the terminal too narrow. */
function listLines(entries: readonly Entry[], { columns, paint }: HelpLayout, column: number): string[] {
  const room = columns - column;
  const isNarrow = room < LEAST_TEXT;
  const indent = isNarrow ? 6 : column;
  return entries.flatMap(({ term, text }) => {
    const lines = wrapped(text, Math.max(20, columns - indent)).map((line) => ' '.repeat(indent) + line);
    const shown = `  ${paint('cyan', term)}`;
    if (isNarrow || widthOf(term) + 4 > column) return [shown, ...lines];
    const [first, ...rest] = lines;
    return [`  ${paint('cyan', padded(term, column - 2))}${first!.slice(column)}`, ...rest];
  });
}

function exampleLines(examples: readonly Example[], { columns, paint }: HelpLayout): string[] {
  return examples.flatMap(([line, effect]) => [
    `  ${line.replaceAll('$0', 'shardtool')}`,
    ...wrapped(effect, Math.max(20, columns - 6)).map((text) => `      ${paint('dim', text)}`),
  ]);
}

/** Sections with a blank line between them. */
function joined(sections: readonly (readonly string[])[]): string {
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}
