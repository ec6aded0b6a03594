import { existsSync } from 'node:fs';
import path from 'node:path';
import { PACK_DEFAULTS } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { bash, type Outcome, shardtool } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const commands = ['pack', 'ls', 'cat', 'unpack', 'verify', 'index', 'plan', 'bench'];
const shards = await packedPhotos();

test('help lists every command, and each command shows its flags and examples', async () => {
  const { code, stdout } = await shardtool('--help');
  expect(code).toBe(0);
  for (const command of commands) expect(stdout).toMatch(new RegExp(`^  shardtool ${command} `, 'm'));
  for (const help of await Promise.all(commands.map((command) => shardtool(command, '--help')))) {
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toMatch(/^Examples:$/m);
    expect(help.stdout.split('Examples:')[1]!.match(/^ {2}shardtool /gm)!.length).toBeGreaterThanOrEqual(2);
  }
});

test('the help of pack says what the writer does by default', async () => {
  const { stdout } = await shardtool('pack', '-h');
  const shown = (flag: string) => new RegExp(`--${flag} [^]*?\\[default: ([^\\]]*)\\]`).exec(stdout)![1];
  expect(shown('format')).toBe(PACK_DEFAULTS.format);
  expect(shown('max-shard-bytes')).toBe(`${PACK_DEFAULTS.maxShardBytes / 2 ** 20}MiB`);
  expect(shown('seed')).toBe(String(PACK_DEFAULTS.seed));
  expect(shown('shuffle')).toBe(String(PACK_DEFAULTS.shuffle));
  expect(shown('quality')).toBe(String(PACK_DEFAULTS.quality));
  expect(shown('on-bad')).toBe(PACK_DEFAULTS.onBad);
  expect(shown('max-bad')).toBe(`${PACK_DEFAULTS.maxBad * 100}%`);
  expect(shown('plan-memory')).toBe(`${PACK_DEFAULTS.planMemory / 2 ** 20}MiB`);
});

test('--version is that of the package', async () => {
  expect((await shardtool('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  [['frobnicate'], 'It does not take this: frobnicate. "shardtool --help" lists the commands.'],
  [['pack', 'a', 'b', '--workers', 'x'], '--workers takes a whole number from 1 to 1,024.'],
  [
    ['pack', 'a', 'b', '--name', '../x'],
    'The option --name does not fit: it is of letters, digits, "_", "-" and "." only, and not "../x".',
  ],
  [['pack', 'a', 'b', '--files', 'x', '--include', 'y'], 'leave --include and --exclude out beside it'],
  [['plan', shards, '--world-size', '7', '--streams', '8'], '7 ranks cannot share 8 streams'],
  [['plan', shards, '--where', 'width >'], '--where: expected a column or a value'],
  [['cat', shards, 'cat/cat_001', 'png'], 'Sample "cat/cat_001" has no field "png"; its fields are cls, jpg.'],
  [['unpack', shards, 'x', '--fields', 'png'], 'No sample has a field "png"; the fields are cls, jpg.'],
])('%j is not right, and one line says why: exit code 2', async (args, sentence) => {
  expectOneLine(await shardtool(...args), 2, sentence);
});

test.each([
  [['ls', 'nowhere'], 'nowhere cannot be opened'],
  [['ls', 'docs'], 'docs has no dataset.json'],
  [['verify', 'nowhere'], 'nowhere cannot be opened'],
  [['index', 'nowhere.tar'], 'nowhere.tar cannot be opened'],
  [['pack', 'nowhere', 'x'], 'The source nowhere does not exist'],
  [['pack', 'examples/photos', shards], 'holds a dataset already'],
  [['cat', shards, 'cat/none'], 'has no sample with the key "cat/none"'],
])('%j cannot be done, and one line says why: exit code 1', async (args, sentence) => {
  expectOneLine(await shardtool(...args), 1, sentence);
});

function expectOneLine({ code, stdout, stderr }: Outcome, exitCode: number, sentence: string): void {
  expect(stderr).toContain(sentence);
  expect(stderr).toMatch(/^shardtool: [^\n]*\n$/);
  expect([code, stdout]).toEqual([exitCode, '']);
}

test('the stack of an error is shown with --verbose alone', async () => {
  const { code, stderr } = await shardtool('ls', 'nowhere', '--verbose');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^shardtool: nowhere cannot be opened[\s\S]*\n +at [\s\S]*ENOENT/);
});

test('bash completes commands, flags and values by the printed script', async () => {
  const complete = async (...words: string[]) => {
    const line = `source <(shardtool completion); COMP_WORDS=(shardtool ${words.join(' ')}); COMP_CWORD=${words.length}
      _shardtool_yargs_completions; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (await bash(line, { SHELL: '/bin/bash' })).stdout.trim().split('\n');
  };
  expect(await complete('un')).toEqual(['unpack']);
  expect(await complete('pack', '--max-shard')).toEqual(['--max-shard-bytes', '--max-shard-samples']);
  expect(await complete('bench', '--transform', 'tr')).toEqual(['train224']);
});

test('a command line that is not right makes no folder', async () => {
  const output = path.join(emptyFolder(), 'shards');
  expect((await shardtool('pack', 'examples/photos', output, '--workers', 'x')).code).toBe(2);
  expect(existsSync(output)).toBe(false);
});
