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

endQuietlyOnClosedPipe();

const cli = yargs(hideBin(process.argv))
  .scriptName('shardtool')
  .usage('$0 COMMAND\n\nTurns many small image files into large shards, and feeds them to training.')
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
  .demandCommand(1, 'Say what to do: shardtool --help lists the commands.')
  .strict()
  .recommendCommands()
  .version(version)
  .wrap(Math.min(110, process.stdout.columns ?? 100))
  .epilogue('Exit codes: 0 done, 1 the work found a fault, 2 the command was not right.')
  .exitProcess(false)
  .fail((message, error) => {
    throw error ?? new UsageError(message);
  });

try {
  await cli.parseAsync();
} catch (error) {
  fail(error, process.argv.includes('--verbose'));
}
