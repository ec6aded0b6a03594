import { expect, test } from 'vitest';
import { RUNNABLE } from '#cli/commands/all';
import { commandHelp, toolHelp } from '#cli/help/render';
import { bash, shardtoolWith } from './cli-process.js';

const plain = (_style: string, text: string) => text;

test.each([60, 80, 110])(
  'help of every command fits a terminal of %i columns, except for words that are longer',
  (columns) => {
    for (const isShort of [true, false]) {
      const layout = { columns, paint: plain, isShort };
      for (const help of [toolHelp(layout), ...RUNNABLE.map((named) => commandHelp(named, layout))]) {
        // Usage and examples are meant to be copied, so they are not broken.
        const lines = help.split('\n').filter((line) => !/^ {2}\S.*(shardtool|curl) |^Usage:/.test(line));
        const tooLong = lines.filter(
          (line) => line.length > columns && line.trim().includes(' ') && /\S {2,}\S| {6}/.test(line),
        );
        expect(tooLong).toEqual([]);
      }
    }
  },
);

test('storage options are listed before the general options, and only for commands that take a location', () => {
  const layout = { columns: 100, paint: plain, isShort: false };
  for (const named of RUNNABLE) {
    const headings = commandHelp(named, layout).match(/^[A-Z][a-z A-Z]*:$/gm)!;
    const options = headings.slice(0, headings.indexOf('General:') + 1);
    if (named.command.isLocal === true) expect(options, named.name).not.toContain('Storage:');
    else expect(options.slice(-2), named.name).toEqual(['Storage:', 'General:']);
  }
});

test('every option has a heading, a value and a description in the help', () => {
  for (const { name, command } of RUNNABLE) {
    for (const [flag, { group, describe }] of Object.entries(command.options)) {
      expect([name, flag, group === undefined, describe === '']).toEqual([name, flag, false, false]);
    }
  }
});

test('shardtool alone shows help on standard error, with exit code 2', async () => {
  for (const [line, usage] of [
    ['shardtool', 'Usage: shardtool <command>'],
    ['shardtool overlay', 'Usage: shardtool overlay <command>'],
  ]) {
    const { code, stdout, stderr } = await bash(line!);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(usage);
  }
});

test('help is coloured with FORCE_COLOR, but not with NO_COLOR or in a pipe', async () => {
  const { stdout } = await shardtoolWith({ FORCE_COLOR: '1' }, 'ls', '--help');
  expect(stdout).toContain('\u001b[1mUsage:\u001b[22m');
  for (const env of [{ NO_COLOR: '1' }, {}]) {
    expect((await shardtoolWith(env, 'ls', '--help')).stdout).not.toContain('\u001b');
  }
});
