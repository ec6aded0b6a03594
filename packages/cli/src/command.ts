import type { ArgumentsCamelCase, Argv, CommandModule } from 'yargs';

/** A command of shardtool, as yargs takes it. */
export interface Command extends CommandModule {
  /** The word to type. */
  readonly name: string;
}

/**
 * A command whose handler gets what its builder declares. What does the work is loaded when a handler runs, since listing
 * flags and completing words have to be quick.
 */
export function command<Given>(parts: {
  readonly name: string;
  /** Behind the name: `<dataset> <key> [field]`. */
  readonly positionals: string;
  readonly describe: string;
  readonly builder: (yargs: Argv) => Argv<Given>;
  readonly handler: (given: ArgumentsCamelCase<Given>) => Promise<void>;
}): Command {
  // Commands are listed together, whatever their arguments are.
  return { ...parts, command: `${parts.name} ${parts.positionals}` } as unknown as Command;
}
