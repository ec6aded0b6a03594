import { endQuietlyOnClosedPipe, fail } from './terminal/outcome.js';
import { version } from './version.js';

const words = process.argv.slice(2);
endQuietlyOnClosedPipe();
if (words.length === 1 && ['--version', '-V'].includes(words[0]!)) {
  process.stdout.write(`${version}\n`);
} else {
  const { runCli } = await import('./cli.js');
  await runCli(words, (error, flags) => fail(error, words, flags));
}
