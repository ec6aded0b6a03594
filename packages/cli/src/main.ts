#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { benchCommand } from './commands/bench.js';
import { catCommand } from './commands/cat.js';
import { indexCommand } from './commands/index.js';
import { lsCommand } from './commands/ls.js';
import { packCommand } from './commands/pack.js';
import { planCommand } from './commands/plan.js';
import { unpackCommand } from './commands/unpack.js';
import { verifyCommand } from './commands/verify.js';
import { endQuietlyOnClosedPipe, fail, UsageError } from './outcome.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
const words = hideBin(process.argv);
/** The flags of the command, once yargs has read them. */
let flags: readonly string[] = [];

/** What yargs says of a command line that is not right, in our words. */
const MESSAGES = {
  'Did you mean %s?': 'There is no such command; did you mean "%s"?',
  'Not enough arguments following: %s': '--%s takes a value.',
  'Invalid values:': 'Wrong value:',
  'Argument: %s, Given: %s, Choices: %s': '--%s %s; it may be %s.',
};

endQuietlyOnClosedPipe();

const cli = yargs(words)
  .scriptName('shardtool')
  .usage('$0 COMMAND\n\nTurns many small image files into large shards, and feeds them to training.')
  // `--include a b` would otherwise take b too.
  .parserConfiguration({ 'greedy-arrays': false })
  .updateStrings(MESSAGES)
  .command(packCommand)
  .command(lsCommand)
  .command(catCommand)
  .command(unpackCommand)
  .command(verifyCommand)
  .command(indexCommand)
  .command(planCommand)
  .command(benchCommand)
  .completion('completion', 'Print a completion script for the shell')
  .option('verbose', { type: 'boolean', default: false, global: true, describe: 'Show the stack of an error' })
  .demandCommand(1, 'Say what to do.')
  .strict()
  .recommendCommands()
  .check((given, options) => {
    const { key, array } = options as unknown as { key: Record<string, true>; array: string[] };
    flags = Object.keys(key);
    const twice = flags.find((flag) => Array.isArray(given[flag]) && !array.includes(flag));
    if (twice !== undefined) throw new UsageError(`--${twice} is given more than once.`);
    return true;
  }, true)
  .version(version)
  .alias('h', 'help')
  .wrap(Math.min(110, process.stdout.columns ?? 100))
  .epilogue('Exit codes: 0 done, 1 the work found a fault, 2 the command was not right.')
  .exitProcess(false)
  .fail((message, error) => {
    throw error ?? new UsageError(`${message.replace(/\s*\n\s*/g, ' ')} ${hint()}`);
  });

try {
  await cli.parseAsync();
} catch (error) {
  await fail(error, words.includes('--verbose'), flags);
}

function hint(): string {
  const commands = [packCommand, lsCommand, catCommand, unpackCommand, verifyCommand, indexCommand, planCommand, benchCommand];
  const command = commands.find(({ name }) => name === words[0]);
  return command === undefined ? '"shardtool --help" lists the commands.' : `"shardtool ${command.name} --help" says more.`;
}
