import path from 'node:path';
import { expect, test } from 'vitest';
import { bash, terminal } from './cli-process.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, tree } from './pack-workbench.js';

/** Enough files for a pack of some tenths of a second. */
const source = tree(Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`a/${i}.jpg`, jpeg(i)])));
/** Enough for tests that do not depend on time. */
const few = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2) });
const ESCAPE = '\u001b';
/** SGR sequences of ECMA-48 end in m. */
const COLOUR = new RegExp(`${ESCAPE}\\[[\\d;]*m`);
/** Only 0 resets all attributes. */
const withoutNormal = (text: string) => text.replaceAll(`${ESCAPE}[0m`, '');

test('a pack on a terminal draws a progress bar without colours, and removes it at the end', async () => {
  const output = newFolder();
  const { code, stdout } = await terminal(`shardtool pack ${source} ${output} --max-shard-samples 10 --workers 1`);
  expect(code).toBe(0);
  expect(stdout).toMatch(/pack \[=* *\] [\d,]+ of 1,500 files/);
  // The cursor is hidden while the bar is shown.
  expect(stdout.lastIndexOf(`${ESCAPE}[?25h`)).toBeGreaterThan(stdout.lastIndexOf(`${ESCAPE}[?25l`));
  expect(stdout.trimEnd().split('\n').at(-2)).toContain('Packed 1,500 files');
  expect(withoutNormal(stdout)).not.toMatch(COLOUR);
});

test('output is not coloured, with or without NO_COLOR', async () => {
  for (const env of [{}, { NO_COLOR: '1' }]) {
    const { stdout } = await terminal(
      `shardtool pack ${few} ${newFolder()}; shardtool pack ${few}; shardtool ls nowhere`,
      env,
    );
    expect(stdout).toContain('Packed 2 files');
    expect(withoutNormal(stdout)).not.toMatch(COLOUR);
  }
});

test('the stack with --verbose is coloured on a terminal, but not with NO_COLOR', async () => {
  expect((await terminal('shardtool ls nowhere --verbose')).stdout).toMatch(COLOUR);
  expect((await terminal('shardtool ls nowhere --verbose', { NO_COLOR: '1' })).stdout).not.toMatch(COLOUR);
});

test('Ctrl-C on a terminal ends a pack and restores the cursor', async () => {
  const output = path.join(emptyFolder(), 'shards');
  const line = `shardtool pack ${source} ${output} --max-shard-samples 5 --workers 1; echo "ended with $?"`;
  const typing = `while [ ! -e ${output}/000009.tar ]; do sleep 0.02; done; printf '\\003'; sleep 0.5`;
  const { stdout } = await terminal(line, {}, typing);
  expect(stdout).toContain('stopped by SIGINT.');
  expect(stdout).toContain('ended with 130');
  expect(stdout.lastIndexOf(`${ESCAPE}[?25h`)).toBeGreaterThan(stdout.lastIndexOf(`${ESCAPE}[?25l`));
});

test('without a terminal a pack prints no control characters', async () => {
  const { stdout, stderr } = await bash(`shardtool pack ${source} ${newFolder()}`);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^Packed 1,500 files.*\nTook .*\n$/);
  expect(stdout).not.toContain(ESCAPE);
});
