import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { bash, bin } from './cli-process.js';
import { cocoSet } from './coco-set.js';
import { emptyFolder } from './datasets.js';
import { type Block, blocksOf, PAGES } from './guides/blocks.js';
import { compile, userProject } from './guides/user-project.js';

const BLOCKS = PAGES.flatMap(blocksOf);
const PAGES_WITH_CODE = PAGES.filter((page) => BLOCKS.some((block) => block.page === page && isRun(block)));

/** Languages of the blocks that are tested. Python is tested by python/tests/test_guides.py. */
const LANGUAGES = ['ts', 'sh', 'console', 'python', 'json', 'text'];

function isRun({ language, notRun }: Block): boolean {
  return notRun === null && ['ts', 'sh', 'console'].includes(language);
}

test('every code block of the guides is run, or has a comment that says why not', () => {
  const unexplained = BLOCKS.filter(({ language, notRun }) => notRun === null && !LANGUAGES.includes(language));
  expect(unexplained.map(({ place, language }) => `${place} ${language}`)).toEqual([]);
  expect(BLOCKS.filter(isRun).length).toBeGreaterThan(8);
  for (const { place, language, notRun, text } of BLOCKS) {
    if (language === 'json' && notRun === null) expect(() => JSON.parse(text), place).not.toThrow();
  }
});

test('every program of the guides that opens a dataset closes it, because otherwise Node warns of open files', () => {
  const opening = BLOCKS.filter(
    ({ language, text }) => language === 'ts' && /await open(Dataset|Mixture)\(/.test(text),
  );
  expect(opening.length).toBeGreaterThan(5);
  const open = opening.filter(({ text }) => !text.includes('await dataset.close();'));
  expect(open.map(({ place }) => place)).toEqual([]);
});

/** Pages that name commands and files. */
const NAMING = [...PAGES, 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'];

/** All code of a page, in blocks and in sentences, whether it is run or not. */
function codeOf(page: string): string[] {
  const text = readFileSync(page, 'utf8');
  const blocks = Array.from(text.matchAll(/^```.*\n([\s\S]*?)^```$/gm), ([, code]) => code!.replaceAll('\\\n', ' '));
  return [
    ...blocks,
    ...Array.from(text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g), ([, code]) => code!),
  ];
}

/** The commands in a piece of code, each with the flags after it. */
function commandsIn(code: string): { readonly command: string; readonly flags: readonly string[] }[] {
  return Array.from(
    code.matchAll(/(?<![\w./@-]|from )shardtool ((?:overlay|cache) [a-z]+|[a-z]+)\b([^\n|;&#]*)/g),
    ([, command, rest]) => {
      return { command: command!, flags: rest!.match(/(?<=\s)--[a-z][\w-]*/g) ?? [] };
    },
  );
}

test('npm start packs to another folder than the first page', () => {
  const [, output] = /^const output = '(.+)';$/m.exec(readFileSync('scripts/demo.mjs', 'utf8'))!;
  expect(readFileSync('README.md', 'utf8')).toContain('$ shardtool pack examples/photos shards\n');
  expect(output).not.toBe('shards');
  expect(readFileSync('.gitignore', 'utf8')).toContain(`/${output}/\n`);
});

test('every command that a page names exists, with the flags that the page uses', async () => {
  const named = NAMING.flatMap((page) =>
    codeOf(page)
      .flatMap(commandsIn)
      .map((one) => ({ page, ...one })),
  );
  expect(named.length).toBeGreaterThan(80);
  const flags = new Map<string, readonly string[]>();
  for (const command of new Set(named.map(({ command }) => command))) {
    const { stdout } = await shardtool(...command.split(' '), '--help');
    expect(stdout, command).toMatch(`shardtool ${command} `);
    flags.set(command, stdout.match(/--[a-z][\w-]*/g)!);
  }
  const known = (command: string, flag: string) =>
    flags.get(command)!.some((one) => one === flag || one === flag.replace('--no-', '--'));
  const unknown = named.flatMap(({ page, command, flags }) =>
    flags.filter((flag) => !known(command, flag)).map((flag) => `${page}: ${command} ${flag}`),
  );
  expect(unknown).toEqual([]);
});

/** All files of the repository except those that are installed or built. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (['node_modules', 'dist', 'lib', '.git'].includes(entry.name)) return [];
    const place = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(place) : [place];
  });
}

test('every script and file of this repository that a page names exists', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object };
  const files = filesBelow('.');
  const missing = NAMING.flatMap((page) =>
    codeOf(page).flatMap((code) => {
      const run = Array.from(code.matchAll(/npm run ([\w:-]+)/g), ([, script]) => script!);
      const isFile = /^[\w.-]+(\/[\w.-]+)+\.(ts|mjs|py|md)$/.test(code);
      return [
        ...run.filter((script) => !(script in scripts)).map((script) => `${page}: npm run ${script}`),
        ...(isFile && !files.some((file) => file.endsWith(`/${code}`)) ? [`${page}: ${code}`] : []),
      ];
    }),
  );
  expect(missing).toEqual([]);
});

/** The map of ARCHITECTURE.md: each package with its folders. */
function mapOfPackages(): [place: string, rooms: string[]][] {
  const [, map] = readFileSync('ARCHITECTURE.md', 'utf8').match(/^```\n(packages\/[\s\S]*?)^```$/m)!;
  const packages: [string, string[]][] = [];
  for (const line of map!.trimEnd().split('\n')) {
    // A line that only continues a text has no name at its start.
    const [, indent, names] = line.match(/^( {2})?(\S+(?: \S+)*) {2,}/) ?? [];
    if (names === undefined) continue;
    if (indent === undefined) packages.push([names, []]);
    else packages.at(-1)![1].push(...names.split(' '));
  }
  return packages;
}

test('the map of ARCHITECTURE.md lists every package and every folder, and nothing else', () => {
  const map = mapOfPackages().filter(([place]) => place.endsWith('/src') && !place.startsWith('python'));
  expect(map.map(([place]) => place).sort()).toEqual(readdirSync('packages').map((name) => `packages/${name}/src`));
  for (const [place, rooms] of map) {
    const folders = readdirSync(place, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(rooms.sort(), place).toEqual(folders.map(({ name }) => name).sort());
  }
});

test('every folder that ARCHITECTURE.md names exists', () => {
  const folders = new Set(filesBelow('.').map((file) => path.dirname(file)));
  const named = codeOf('ARCHITECTURE.md').filter((code) => /^[a-z][\w-]*(\/[\w-]+)+$/.test(code));
  expect(named).not.toEqual([]);
  expect(named.filter((name) => ![...folders].some((folder) => folder.endsWith(`/${name}`)))).toEqual([]);
});

test('every page of docs is in the menu of the site', () => {
  const folder = path.join(emptyFolder(), 'pages');
  const program = "import { layOut } from './site/pages.mjs'; layOut('.', process.argv[1]);";
  execFileSync(process.execPath, ['--input-type=module', '--eval', program, folder]);
  const pages = readdirSync('docs').filter((file) => file.endsWith('.md'));
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['index.md', 'python.md', ...pages]));
  const list = readFileSync(path.join(folder, 'public/llms.txt'), 'utf8');
  const listed = Array.from(list.matchAll(/\]\((raw\/[\w-]+\.txt)\)/g), ([, file]) => file!);
  expect(listed.length).toBeGreaterThan(pages.length);
  for (const file of listed) expect(readFileSync(path.join(folder, 'public', file), 'utf8'), file).toMatch(/^# /m);
});

/** The anchor of a heading, as GitHub generates it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

test('every link of a page to a file or a heading of the repository has a target', () => {
  const pages = [...NAMING, 'bench/README.md', 'examples/cluster/README.md'];
  const anchors = (file: string) => {
    const text = readFileSync(file, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
    const headings = Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading]) => anchorOf(heading!));
    return [...headings, ...Array.from(text.matchAll(/<a id="([^"]+)">/g), ([, id]) => id!)];
  };
  const broken = pages.flatMap((page) => {
    const text = readFileSync(page, 'utf8')
      .replaceAll(/^```[\s\S]*?^```$/gm, '')
      .replaceAll(/`[^`\n]*`/g, '');
    return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!)
      .filter((target) => {
        if (/^https?:/.test(target)) return false;
        const [place, heading] = target.split('#') as [string, string | undefined];
        const file = place === '' ? page : path.join(path.dirname(page), place);
        if (!existsSync(file)) return true;
        return heading !== undefined && !anchors(file).includes(heading);
      })
      .map((target) => `${page}: ${target}`);
  });
  expect(broken).toEqual([]);
});

/** The type of `batch.images` for a loader with these options. */
const IMAGES = {
  "{ transform: 'train224' }": 'Uint8Array<ArrayBuffer>',
  "{ transform: 'raw' }": 'null',
  "{ collate: 'list' }": 'null',
  "{ batchSize: 8, where: 'width > 9' }": 'Uint8Array<ArrayBuffer>',
  "{ transform: [{ name: 'centerCrop', size: 8 }] }": 'Uint8Array<ArrayBuffer>',
  "{ transform: [{ name: 'normalize', mean: [0, 0, 0], std: [1, 1, 1] }] }": 'Float32Array<ArrayBuffer>',
  "{ transform: [{ name: 'toDtype', dtype: 'float32', scale: true }] }": 'Float32Array<ArrayBuffer>',
  "{ transform: [{ name: 'normalize', mean: [0, 0, 0], std: [1, 1, 1] }, { name: 'toDtype', dtype: 'float16' }] }":
    'Uint8Array<ArrayBuffer>',
  "{ channels: 1, pixelDtype: 'uint16' }": 'Uint16Array<ArrayBuffer>',
  "{ transform: 'train224', reuse: true }": 'Uint8Array',
  '{ transform: list }': 'Uint8Array<ArrayBuffer> | Float32Array<ArrayBuffer>',
  options: 'Uint8Array | Uint16Array | Int16Array | Float32Array | null',
  '{ image: false }': 'null',
};

function typeProgram(): string {
  return [
    "import { type Batch, type Loader, type LoaderOptions, openDataset, type StepInput } from 'shardtool';",
    'type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;',
    'type Images<Of> = Of extends Loader<infer Content> ? Batch<Content>["images"] : never;',
    "const dataset = await openDataset('shards');",
    'declare const list: readonly StepInput[];',
    'declare const options: LoaderOptions;',
    ...Object.entries(IMAGES).flatMap(([given, images], i) => [
      `const loader${i} = dataset.loader(${given});`,
      `export const images${i}: Same<Images<typeof loader${i}>, ${images}> = true;`,
    ]),
    'const plain = dataset.loader();',
    'export const nothing: Same<Images<typeof plain>, Uint8Array<ArrayBuffer>> = true;',
    '// An unknown option and an unknown step are type errors.',
    '// @ts-expect-error',
    'dataset.loader({ batchsize: 8 });',
    '// @ts-expect-error',
    "dataset.loader({ batchSize: 8, transform: [{ name: 'centreCrop', size: 8 }] });",
    '// Code that accepts any batch accepts each kind.',
    'declare function use(batch: Batch, loader: Loader): void;',
    'for await (const batch of loader0) use(batch, loader0);',
  ].join('\n');
}

/** A block as a module, with fewer epochs: its output does not matter. */
function moduleOf({ text }: Block): string {
  return `${text.replaceAll(/\b90\b/g, '1')}\nexport {};\n`;
}

/** The folder in which all TypeScript blocks are compiled together, by their positions. */
const compiled = userProject();
const faults = compileAll();

function fileOf({ place }: Block): string {
  return place.replaceAll(/\W/g, '-');
}

function compileAll(): string {
  for (const block of BLOCKS) {
    if (block.language === 'ts') writeFileSync(path.join(compiled, `${fileOf(block)}.ts`), moduleOf(block));
  }
  writeFileSync(path.join(compiled, 'types.ts'), typeProgram());
  return compile(compiled);
}

test('TypeScript of the guides compiles, and batch.images has the type that transform and collate imply', () => {
  expect(faults).toBe('');
});

/** Data that users of other software have. */
const PLACES = { hub: 'parquet/hub', lit: 'litdata/photos', mds: 'mds/photos', records: 'tfrecord/photos' };

/** A folder like that of the guides: photos, and files of a user. */
function userFolder(): string {
  const folder = userProject();
  cpSync('examples/photos', path.join(folder, 'photos'), { recursive: true });
  cpSync('examples/photos', path.join(folder, 'examples/photos'), { recursive: true });
  for (const [name, fixture] of Object.entries(PLACES))
    cpSync(`test/fixtures/${fixture}`, path.join(folder, name), { recursive: true });
  const own = {
    'list.json': '[{ "name": "randomResizedCrop", "size": 64 }, { "name": "randomHorizontalFlip" }]',
    'bad.txt': 'cat/cat_003\n',
    'fixed.csv': 'key,class\ncoffee/coffee_001,moon\n',
  };
  for (const [name, text] of Object.entries(own)) writeFileSync(path.join(folder, name), text);
  return folder;
}

/** Images with objects, in the folders of COCO and YOLO. */
function layDetection(folder: string): void {
  const { images, annotations } = cocoSet(6);
  cpSync(images, path.join(folder, 'train2017'), { recursive: true });
  cpSync(annotations, path.join(folder, 'annotations/instances_train2017.json'));
  for (const part of ['train', 'val']) {
    cpSync(path.join(images, '0000.jpg'), path.join(folder, `coco8/images/${part}/0.jpg`));
    mkdirSync(path.join(folder, 'coco8/labels', part), { recursive: true });
    writeFileSync(path.join(folder, 'coco8/labels', part, '0.txt'), '0 0.5 0.5 0.25 0.5\n');
  }
  writeFileSync(path.join(folder, 'coco8/data.yaml'), 'names: [dog]\n');
  const given = { boxes: { field: 'json', path: 'boxes' }, labels: { field: 'json', path: 'labels' } };
  writeFileSync(path.join(folder, 'annotations.json'), JSON.stringify(given));
}

/** The commands after `$ `, with the expected output; `...` stands for any lines. */
function transcript({ text }: Block): { readonly line: string; readonly printed: string }[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [line, ...printed] = part.split('\n');
      return { line: line!, printed: printed.join('\n') };
    });
}

function pattern(printed: string): RegExp {
  const quoted = printed.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${quoted.replaceAll('\\.\\.\\.\n', '(?:.*\n)*').replaceAll('\\.\\.\\.', '.*')}$`);
}

/** A word of a line, in quotes or without special characters of the shell. */
const WORD = /^(?:"([^"$`\\]*)"|'([^']*)'|([\w@%+=:,./-]+))(?=\s|$)\s*/;

/** The words of each line if all are commands of shardtool; null if they need a shell. */
function plainCommands(lines: string): string[][] | null {
  const commands = lines
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '')
    .map(wordsOf);
  const withoutNpx = commands.map((words) => (words?.[0] === 'npx' ? words.slice(1) : words));
  if (!withoutNpx.every((words) => words?.[0] === 'shardtool')) return null;
  return withoutNpx.map((words) => words!.slice(1));
}

function wordsOf(line: string): string[] | null {
  const words: string[] = [];
  let rest = line;
  while (rest !== '') {
    const found = WORD.exec(rest);
    if (found === null) return null;
    words.push(found[1] ?? found[2] ?? found[3]!);
    rest = rest.slice(found[0].length);
  }
  return words;
}

/** Runs commands in this process, because starting processes takes most of the time; those of README.md get a process. */
async function inProcess(folder: string, commands: readonly string[][]): Promise<string> {
  const before = process.cwd();
  let printed = '';
  process.chdir(folder);
  try {
    for (const words of commands) {
      const { code, stdout, stderr } = await shardtool(...words);
      expect([code, stderr], words.join(' ')).toEqual([0, stderr]);
      printed += stdout;
    }
  } finally {
    process.chdir(before);
  }
  return printed;
}

test.each(PAGES_WITH_CODE)('the commands and programs of %s run in the order of the page', async (page) => {
  const folder = userFolder();
  if (page === 'docs/detection.md') layDetection(folder);
  const blocks = blocksOf(page).filter(isRun);
  const sh = async (line: string) => {
    const commands = page === 'README.md' ? null : plainCommands(line);
    if (commands !== null) return inProcess(folder, commands);
    const tool = `shardtool() { "${process.execPath}" "${bin}" "$@"; }; npx() { "$@"; }; export -f shardtool npx`;
    const { code, stdout, stderr } = await bash(`${tool}; cd "${folder}"; set -eo pipefail; ${line}`);
    expect([code, stderr], `${page}: ${line}`).toEqual([0, stderr]);
    return stdout;
  };
  const packs = blocks.some(({ text }) => /shardtool pack \S+ shards\b/.test(text));
  if (!packs) await sh('npx shardtool pack photos shards --quiet');
  if (blocks.some(({ language }) => language === 'ts'))
    cpSync(path.join(compiled, 'out'), path.join(folder, 'out'), { recursive: true });
  for (const block of blocks) {
    if (block.language === 'sh') await sh(block.text);
    else if (block.language === 'ts') await sh(`"${process.execPath}" out/${fileOf(block)}.js`);
    else for (const { line, printed } of transcript(block)) expect(await sh(line)).toMatch(pattern(printed));
  }
});
