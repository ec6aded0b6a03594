import type { Command, FlagTable } from '../command.js';
import { STORAGE_FLAGS } from './storage-flags.js';

const group = 'General';

/** Options of every command. */
export const GENERAL_FLAGS = {
  json: { type: 'boolean', default: false, group, describe: 'Print results and errors as JSON' },
  'log-format': {
    choices: ['text', 'json'] as const,
    default: 'text' as const,
    requiresArg: true,
    group,
    placeholder: 'FORMAT',
    describe: 'Format of progress, warnings and errors on standard error; json writes one object per line',
  },
  verbose: { type: 'boolean', default: false, group, describe: 'Show more details, and the stack of an error' },
  help: { type: 'boolean', alias: 'h', group, describe: 'Show help; -h shows a summary' },
} as const satisfies FlagTable;

/** All options of a command: its own, those of storage if it takes a location, and those of every command. */
export function allFlags({ options, isLocal }: Command): FlagTable {
  return { ...options, ...(isLocal === true ? {} : STORAGE_FLAGS), ...GENERAL_FLAGS };
}
