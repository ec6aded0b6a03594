import { endQuietlyOnClosedPipe, fail, Interrupted } from './terminal/outcome.js';
import { version } from './version.js';

const words = process.argv.slice(2);
endQuietlyOnClosedPipe();
if (words.length === 1 && ['--version', '-V'].includes(words[0]!)) {
  process.stdout.write(`${version}\n`);
} else {
  const { runCli } = await import('./cli.js');
  await runCli(words, async (error, flags) => {
    await fail(error, words, flags);
    // A read from a server that does not answer would keep the process alive.
    if (error instanceof Interrupted) process.exit();
  });
}
