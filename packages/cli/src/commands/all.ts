import { type AnyCommand, COMMAND_GROUPS, type Command, isFamily } from '../command.js';
import { completionCommand } from './completion.js';
import { benchCommand } from './look/bench.js';
import { cacheCommand } from './look/cache.js';
import { catCommand } from './look/cat.js';
import { inspectCommand } from './look/inspect.js';
import { lsCommand } from './look/ls.js';
import { planCommand } from './look/plan.js';
import { previewCommand } from './look/preview.js';
import { statsCommand } from './look/stats.js';
import { transformsCommand } from './look/transforms.js';
import { tuneCommand } from './look/tune.js';
import { viewCommand } from './look/view.js';
import { commitCommand } from './shards/commit.js';
import { compactCommand } from './shards/compact.js';
import { convertCommand } from './shards/convert.js';
import { eraseCommand } from './shards/erase.js';
import { gcCommand } from './shards/gc.js';
import { indexCommand } from './shards/index.js';
import { logCommand } from './shards/log.js';
import { packCommand } from './shards/pack.js';
import { restoreCommand } from './shards/restore.js';
import { unpackCommand } from './shards/unpack.js';
import { verifyCommand } from './shards/verify.js';
import { mergeCommand } from './views/merge.js';
import { overlayCommand } from './views/overlay.js';
import { relabelCommand } from './views/relabel.js';
import { splitCommand } from './views/split.js';
import { subsetCommand } from './views/subset.js';

/** All commands, by the heading under which help lists them. */
export const COMMANDS_BY_GROUP: Readonly<Record<(typeof COMMAND_GROUPS)[number], readonly AnyCommand[]>> = {
  Create: [packCommand, convertCommand, indexCommand, mergeCommand, commitCommand],
  Look: [lsCommand, logCommand, statsCommand, inspectCommand, viewCommand, previewCommand, catCommand],
  Check: [verifyCommand],
  Change: [
    splitCommand,
    subsetCommand,
    relabelCommand,
    overlayCommand,
    eraseCommand,
    compactCommand,
    restoreCommand,
    gcCommand,
  ],
  Train: [planCommand, benchCommand, tuneCommand, transformsCommand],
  Other: [unpackCommand, cacheCommand, completionCommand],
};

export const COMMANDS: readonly AnyCommand[] = COMMAND_GROUPS.flatMap((group) => COMMANDS_BY_GROUP[group]);

/** Name of each command. */
export const COMMAND_NAMES: readonly string[] = COMMANDS.map(({ name }) => name);

/** A command that a command line names, with all words of its name: `overlay add`. */
export interface NamedCommand {
  readonly name: string;
  readonly command: AnyCommand;
}

/** Every command that does something, with its full name. */
export const RUNNABLE: readonly { readonly name: string; readonly command: Command }[] = COMMANDS.flatMap((command) =>
  isFamily(command)
    ? command.commands.map((one) => ({ name: `${command.name} ${one.name}`, command: one }))
    : [{ name: command.name, command }],
);

/** The command that the first words name, as far as they name one. */
export function findCommand(words: readonly string[]): NamedCommand | null {
  const command = COMMANDS.find(({ name }) => name === words[0]);
  if (command === undefined) return null;
  if (!isFamily(command)) return { name: command.name, command };
  const sub = command.commands.find(({ name }) => name === words[1]);
  return sub === undefined ? { name: command.name, command } : { name: `${command.name} ${sub.name}`, command: sub };
}
