import type { OptionGroup } from '@shardtool/base/text';
import type { ArgumentsCamelCase, InferredOptionTypes, Options } from 'yargs';

/** Values of the options of every command, as its handler receives them. */
export interface GeneralGiven {
  readonly json: boolean;
  readonly logFormat: 'text' | 'json';
  readonly verbose: boolean;
}

/** Headings under which `shardtool --help` lists the commands, in this order. */
export const COMMAND_GROUPS = ['Create', 'Look', 'Check', 'Change', 'Train', 'Other'] as const;

/** A positional argument of a command. */
export interface ArgumentSpec {
  readonly type: 'string';
  readonly describe: string;
  /** Whether it must be given. */
  readonly demandOption?: true;
  /** Whether it takes all further words. Only the last argument can. */
  readonly array?: true;
  readonly choices?: readonly string[];
}

/** An option of a command: the properties for yargs to parse it, and the text for help and docs. */
export interface FlagSpec extends Omit<Options, 'group'> {
  readonly describe: string;
  /** Heading in help and docs. Default: `General`. */
  readonly group?: OptionGroup;
  /** Placeholder of the value in help: `PX` gives `--resize <PX>`. Default: by type. */
  readonly placeholder?: string;
  /** Whether the short help (`-h`) lists the option. */
  readonly isCommon?: boolean;
}

export type FlagTable = Readonly<Record<string, FlagSpec>>;

/** An example: a command line and its effect. */
export type Example = readonly [line: string, effect: string];

interface Described {
  /** The word to type. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further sentences for the help of the command and its page in docs. */
  readonly details?: string;
  readonly examples: readonly Example[];
}

/** A command with a handler, as opposed to a family of commands. */
export interface Command extends Described {
  readonly arguments: Readonly<Record<string, ArgumentSpec>>;
  readonly options: FlagTable;
  /** Whether the command takes a location that may be remote, and with it the options of storage. Default: true. */
  readonly isLocal?: boolean;
  readonly handler: (given: never) => Promise<void>;
}

/** A command of several subcommands: `overlay add`. */
export interface CommandFamily extends Described {
  readonly commands: readonly Command[];
}

export type AnyCommand = Command | CommandFamily;

export function isFamily(command: AnyCommand): command is CommandFamily {
  return 'commands' in command;
}

/**
 * A command whose handler receives what `arguments` and `options` declare. Modules that do the work are loaded when a handler
 * runs, because help and completion have to be quick.
 */
export function command<
  const Arguments extends Readonly<Record<string, ArgumentSpec>>,
  const Flags extends FlagTable,
>(parts: {
  readonly name: string;
  readonly summary: string;
  readonly details?: string;
  readonly arguments: Arguments;
  readonly options: Flags;
  readonly examples: readonly Example[];
  readonly isLocal?: boolean;
  readonly handler: (
    given: ArgumentsCamelCase<InferredOptionTypes<Writable<Arguments>> & InferredOptionTypes<Writable<Flags>>> &
      GeneralGiven,
  ) => Promise<void>;
}): Command {
  return parts as unknown as Command;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };
