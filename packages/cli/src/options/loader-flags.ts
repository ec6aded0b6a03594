import type { LoaderOptions } from '@shardtool/reader';
import { LOADER_OPTIONS, type LoaderOption, type ReadingCommand } from '@shardtool/reader/option-table';
import { flagsOf, kebab } from './option-flags.js';

type Table = typeof LOADER_OPTIONS;
/** The options that a command has as flags. */
type OptionsOf<Command extends ReadingCommand> = {
  readonly [Name in keyof Table as Table[Name] extends { readonly commands: readonly (infer Of)[] }
    ? Command extends Of
      ? Name
      : never
    : never]: Table[Name];
};

const ALL: Readonly<Record<string, LoaderOption>> = LOADER_OPTIONS;

function optionsOf<Command extends ReadingCommand>(command: Command): OptionsOf<Command> {
  const has = ({ commands = [] }: LoaderOption) => commands.includes(command);
  return Object.fromEntries(Object.entries(ALL).filter(([, entry]) => has(entry))) as OptionsOf<Command>;
}

/** The flags of the loader's options that a command takes. What is left out stays undefined. */
export function loaderFlags<Command extends ReadingCommand>(command: Command) {
  return flagsOf(optionsOf(command));
}

/** What those flags were given, as a loader takes it. */
export function loaderOptions<Command extends ReadingCommand>(
  command: Command,
  given: Readonly<Record<string, unknown>>,
): Pick<LoaderOptions, keyof OptionsOf<Command>> {
  const named = Object.entries<{ readonly flag?: string }>(optionsOf(command)).map(([name, { flag }]) => [
    name,
    given[flag ?? kebab(name)],
  ]);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined));
}
