#!/usr/bin/env node
import { hideBin } from 'yargs/helpers';
import { runCli } from './cli.js';
import { endQuietlyOnClosedPipe, fail } from './terminal/outcome.js';

const words = hideBin(process.argv);
endQuietlyOnClosedPipe();
await runCli(words, (error, flags) => fail(error, words, flags));
