import { expect, test } from 'vitest';
import { RUNNABLE } from '#cli/commands/all';
import { optionsByGroup, optionText } from '#cli/help/option-text';
import { EXIT_CODES } from '#cli/help/render';
import { usageOf } from '#cli/help/usage';
import { GENERAL_FLAGS } from '#cli/options/general-flags';
import { STORAGE_FLAGS } from '#cli/options/storage-flags';

type Flags = Parameters<typeof optionsByGroup>[0];

test('docs/cli.md equals the generated page of commands and options', async () => {
  await expect(page()).toMatchFileSnapshot('../docs/cli.md');
});

function page(): string {
  return [
    '# Command line',
    '',
    'Every command with its arguments and options. A test generates this page from the tables that `--help` is rendered from.',
    '`-h` shows the common options of a command, `--help` all of them. `shardtool completion bash` (or `zsh`, `fish`) prints a script for',
    'completion.',
    '',
    '| command | what it does |',
    '|---|---|',
    ...RUNNABLE.map(
      ({ name, command }) => `| [\`${name}\`](#${name.replaceAll(' ', '-')}) | ${cell(command.summary)} |`,
    ),
    '',
    '## Options of every command',
    '',
    ...optionTable(GENERAL_FLAGS),
    '',
    'Commands that take a location, which may be remote, also have:',
    '',
    ...optionTable(STORAGE_FLAGS),
    '',
    '## Output, errors and exit codes',
    '',
    'Results go to standard output; progress, warnings and errors go to standard error. Without a terminal, progress is a line with the time',
    'every few seconds. With `--json`, standard output has only JSON: one object, or one object per line where a command lists things. If a command',
    'fails, the last line is `{"error": {"code", "message", "exitCode", ...}}`, in which `code` is stable: `ERR_SHARDTOOL_USAGE` for an invalid',
    'command line, otherwise that of an [error class](errors.md). The message is printed on standard error as well. `help` names its section in [Errors](errors.md). `shard`, `key`, `offset`, `path` and `status` are present if they are known.',
    'With `--log-format json`, each line on standard error is an object with `time`, `level`, `message` and `event` (`progress`, `retry`, `error`).',
    'The schema of what each command prints is `docs/json.schema.json` (JSON Schema, a definition per command).',
    'FORCE_COLOR turns colours on, and NO_COLOR turns them off. Otherwise, only terminals get colours.',
    '',
    '| exit code | meaning |',
    '|---|---|',
    ...EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`),
    ...RUNNABLE.flatMap((named) => commandLines(named)),
    '',
  ].join('\n');
}

function commandLines({ name, command }: (typeof RUNNABLE)[number]): string[] {
  const words = Object.entries(command.arguments);
  return [
    '',
    `## ${name}`,
    '',
    `${command.summary}.${command.details === undefined ? '' : ` ${command.details}`}`,
    '',
    '```text',
    usageOf(name, command),
    '```',
    '',
    '| argument | meaning |',
    '|---|---|',
    ...words.map(([argument, { describe }]) => `| \`${argument}\` | ${cell(describe)} |`),
    ...optionsByGroup(command.options).flatMap(([group, options]) => [
      '',
      `**${group}**`,
      '',
      ...optionTable(Object.fromEntries(options)),
    ]),
    '',
    'Examples:',
    '',
    '```text',
    ...command.examples.flatMap(([line, effect]) => [`# ${effect}`, line.replaceAll('$0', 'shardtool')]),
    '```',
  ];
}

function optionTable(flags: Flags): string[] {
  return [
    '| option | meaning | notes |',
    '|---|---|---|',
    ...Object.entries(flags).map(([name, flag]) => {
      const { term, text, notes } = optionText(name, flag);
      return `| \`${term.replaceAll('|', '\\|')}\` | ${cell(text)} | ${notes.map(cell).join('; ')} |`;
    }),
  ];
}

function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replace(/(?<![`\w-])(--[a-z][\w-]*)/g, '`$1`')
    .replaceAll('<', '&lt;')
    .replaceAll('**', '\\*\\*');
}
