import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACK_DEFAULTS } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { type Outcome, shardtool } from './cli-here.js';
import { bash, bin, shardtool as program } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const commands = ['pack', 'ls', 'cat', 'unpack', 'verify', 'index', 'plan', 'bench'];
const shards = await packedPhotos();
const archive = path.join(emptyFolder(), 'photos.7z');
writeFileSync(archive, Buffer.from('377abcaf271c0004', 'hex'));

test('help lists every command, and each command shows its flags and examples', async () => {
  const { code, stdout } = await shardtool('--help');
  expect(code).toBe(0);
  for (const command of commands) expect(stdout).toMatch(new RegExp(`^  ${command} +[A-Z]`, 'm'));
  for (const help of await Promise.all(commands.map((command) => shardtool(command, '--help')))) {
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toMatch(/^Examples:$/m);
    expect(help.stdout.split('Examples:')[1]!.match(/^ {2}shardtool /gm)!.length).toBeGreaterThanOrEqual(2);
  }
});

test('the help of pack states the default values of the writer', async () => {
  const { stdout } = await shardtool('pack', '--help');
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

test('"help pack" shows the help of pack', async () => {
  const { code, stdout } = await shardtool('help', 'pack');
  expect({ code, stdout }).toEqual({ code: 0, stdout: (await shardtool('pack', '--help')).stdout });
});

test('-q is short for --quiet, at any position', async () => {
  expect(await shardtool('verify', '-q', shards)).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('--version and -V print the version of the package', async () => {
  expect((await program('-V')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect((await program('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  [['pack', 'a', 'b', '--rezise', '256'], 'Unknown option --rezise; did you mean "--resize"?'],
  [['bench', shards, '--batchsize=8'], 'Unknown option --batchsize; did you mean "--batch-size"?'],
  [['ls', shards, '--frobnicate'], 'Unknown option --frobnicate. See "shardtool ls --help".'],
  [['ls', 'ftp://host/shards'], 'ftp://host/shards is not a supported location'],
  [['pack', 'a', 'b', '--format', 'zip'], 'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack.'],
  [
    ['ls', 'examples/photos/cat/cat_000.jpg'],
    'is a single image (jpeg), which shardtool does not read. It reads tar (.tar)',
  ],
  [['convert', archive, 'x'], 'is a 7z archive, which shardtool does not read'],
  [['ls', 'nowhere'], 'nowhere cannot be opened'],
  [['ls', 'scripts'], 'scripts has no dataset.json'],
  [['verify', 'nowhere'], 'nowhere cannot be opened'],
  [['index', 'nowhere.tar'], 'nowhere.tar cannot be opened'],
  [['pack', 'nowhere', 'x'], 'The source nowhere does not exist'],
  [['commit', 'nowhere'], 'No such folder: nowhere'],
  [['overlay', 'ls', 'nowhere'], 'nowhere cannot be opened'],
  [['frobnicate'], 'Unknown command "frobnicate". See "shardtool --help".'],
  [['pack', 'a', 'b', '--workers', 'x'], '--workers takes a whole number from 1 to 1,024.'],
  [
    ['pack', 'a', 'b', '--name', '../x'],
    'The option --name is invalid: it has only letters, digits, "_", "-" and ".", not "../x".',
  ],
  [['pack', 'a', 'b', '--files', 'x', '--include', 'y'], 'remove --include and --exclude'],
  [['plan', shards, '--world-size', '7', '--streams', '8'], '7 ranks cannot share 8 streams'],
  [
    ['pack', 'examples/photos', 'x', '--staging', 'y'],
    'The option --staging is for output in a bucket, but x is a local folder; remove it.',
  ],
  [['convert', shards, 'x', '--staging', 'y'], 'x is a local folder; remove it.'],
  [
    ['overlay', 'add', shards, 'x', '--exclude-where', 'width >'],
    'shardtool: --exclude-where, position 8 of "width >": expected a column or a value',
  ],
  [
    ['overlay', 'add', shards, 'x', '--exclude-where', 'wide > 9'],
    'shardtool: --exclude-where, position 1 of "wide > 9": there is no column "wide"',
  ],
  [['plan', shards, '--where', 'width >'], '--where, position 8 of "width >": expected a column or a value'],
  [['cat', shards, 'cat/cat_001', 'png'], 'Sample "cat/cat_001" has no field "png"; its fields are cls, jpg.'],
  [['cat', shards, 'cat/none'], 'has no sample with the key "cat/none"'],
  [['pack', emptyFolder(), 'x'], 'contains no file that can be packed'],
  [['ls', shards, '--overlay', 'none'], 'There is no overlay'],
  [['unpack', shards, 'x', '--fields', 'png'], 'No sample has a field "png"; the fields are cls, jpg.'],
])('the usage error for %j is one line, and the exit code is 2', async (args, sentence) => {
  expectOneLine(await shardtool(...args), 2, sentence);
});

test.each([[['pack', 'examples/photos', shards], 'already contains a dataset']])(
  'the failure of %j is one line, and the exit code is 1',
  async (args, sentence) => {
    expectOneLine(await shardtool(...args), 1, sentence);
  },
);

test.each([
  [['help', 'ls'], 0],
  [['pack', 'examples/photos', shards], 1],
  [['ls', 'nowhere'], 2],
] as const)('the process of %j exits with the code and prints the output of the command', async (args, exitCode) => {
  const { code, stdout, stderr } = await shardtool(...args);
  expect(code).toBe(exitCode);
  expect(await program(...args)).toMatchObject({ code, stdout, stderr, signal: null });
});

function expectOneLine({ code, stdout, stderr }: Outcome, exitCode: number, sentence: string): void {
  expect(stderr).toContain(sentence);
  expect(stderr).toMatch(/^shardtool: [^\n]*\n$/);
  expect([code, stdout]).toEqual([exitCode, '']);
}

test.each(['10.24.1', '18.20.8', '20.18.3', '20.19.0', '24.0.0'])(
  'on Node %s the command starts, or reports in one line that this Node is too old, before it loads anything',
  async (version) => {
    // The program as installed, without the modules that it loads.
    const folder = emptyFolder();
    mkdirSync(path.join(folder, 'lib'), { recursive: true });
    cpSync(bin, path.join(folder, 'lib', path.basename(bin)));
    cpSync('packages/cli/package.json', path.join(folder, 'package.json'));
    writeFileSync(path.join(folder, 'lib/main.js'), 'console.log("started");');
    const pretend = path.join(folder, 'pretend.cjs');
    writeFileSync(pretend, `Object.defineProperty(process.versions, 'node', { value: '${version}' });`);
    const start = () => {
      const args = ['--require', pretend, path.join(folder, 'lib', path.basename(bin))];
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      return { code: status, stdout, stderr };
    };
    const isOld = version.startsWith('1') || version === '20.18.3';
    if (!isOld) expect(start()).toEqual({ code: 0, stdout: 'started\n', stderr: '' });
    rmSync(path.join(folder, 'lib/main.js'));
    const sentence = `Node 20.19 or newer is needed, and ${process.execPath} is Node ${version}: install a newer one`;
    if (isOld) expectOneLine(start() as Outcome, 1, sentence);
  },
);

test('the stack of an error is shown only with --verbose', async () => {
  const { code, stderr } = await shardtool('ls', 'nowhere', '--verbose');
  expect(code).toBe(2);
  expect(stderr).toMatch(/^shardtool: nowhere cannot be opened[\s\S]*\n +at [\s\S]*ENOENT/);
});

const ASKED = [
  { words: ['overlay', 'r'], completed: ['rm'] },
  { words: ['completion', 'f'], completed: ['fish'] },
  { words: ['un'], completed: ['unpack'] },
  { words: ['pack', '--max-shard'], completed: ['--max-shard-bytes', '--max-shard-samples'] },
  { words: ['bench', '--checksum', 'al'], completed: ['always'] },
];

/** The script that `completion bash` prints. */
const bashScript = path.join(emptyFolder(), 'script');
writeFileSync(bashScript, (await program('completion', 'bash')).stdout);

test.each(ASKED)('bash completes $words with the printed script, also after npx', async ({ words, completed }) => {
  const complete = async (typed: readonly string[], by: string) => {
    const line = `source ${bashScript}; COMP_WORDS=(${typed.join(' ')}); COMP_CWORD=${typed.length - 1}
      ${by}; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (await bash(line)).stdout.trim().split('\n');
  };
  expect(await complete(['shardtool', ...words], '_shardtool')).toEqual(completed);
  expect(await complete(['npx', 'shardtool', ...words], '_shardtool_npx')).toEqual(completed);
  expect(await complete(['npx', 'sh'], '_shardtool_npx')).toEqual(['shardtool']);
});

const zsh = spawnSync('zsh', ['-c', 'true']).status === 0;

test.skipIf(!zsh).each(ASKED)(
  'zsh completes $words with the printed script, also after npx',
  async ({ words, completed }) => {
    const complete = async (typed: readonly string[], by: string) => {
      // The completions of zsh are printed.
      const offer = `compdef() { : }; _describe() { print -l -- \${(P)2%%:*} }; _default() { print default }`;
      const line = `${offer}; source <(shardtool completion zsh); words=(${typed.join(' ')}); CURRENT=${typed.length}; ${by}`;
      const { stdout } = await bash(
        `export -f shardtool; zsh -f -c '${`shardtool() { bash -c "shardtool $*" }; ${line}`.replaceAll("'", `'\\''`)}'`,
      );
      return stdout
        .trim()
        .split('\n')
        .filter((word) => word.startsWith(typed.at(-1)!));
    };
    expect(await complete(['shardtool', ...words], '_shardtool')).toEqual(completed);
    expect(await complete(['npx', 'shardtool', ...words], '_shardtool_npx')).toEqual(completed);
  },
);

const fish = spawnSync('fish', ['-c', 'true']).status === 0;
const fishScript = path.join(emptyFolder(), 'script.fish');
writeFileSync(fishScript, (await program('completion', 'fish')).stdout);

test.skipIf(!fish).each(ASKED)(
  'fish completes $words with the printed script, also after npx, with descriptions',
  async ({ words, completed }) => {
    for (const line of [
      ['shardtool', ...words],
      ['npx', 'shardtool', ...words],
    ]) {
      const { stdout } = await bash(`fish --no-config -c 'source ${fishScript}; complete -C "${line.join(' ')}"'`);
      const found = stdout.trim().split('\n');
      expect(found.map((one) => one.split('\t')[0])).toEqual(completed);
    }
  },
);

test('thousands of lines that are not read yet cause no warning of Node', async () => {
  const program = `import { print } from '#cli/terminal/outcome';
    for (let i = 0; i < 20000; i++) void print('a line of some length, number ' + i);`;
  const { code, stdout, stderr } = await bash(
    `node --input-type=module -e "${program}" | (read line; cat | tail -n 1)`,
  );
  expect([code, stdout.trim(), stderr]).toEqual([0, 'a line of some length, number 19999', '']);
});

test('an invalid command line creates no folder', async () => {
  const output = path.join(emptyFolder(), 'shards');
  expect((await shardtool('pack', 'examples/photos', output, '--workers', 'x')).code).toBe(2);
  expect(existsSync(output)).toBe(false);
});
