import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ShardtoolError } from '@shardtool/base';
import { rolldown } from 'rolldown';
import { beforeAll, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';

const PACKAGES = ['base', 'storage', 'format', 'reader', 'writer', 'cuda', 'cli'] as const;
const exported = new Map<string, Record<string, unknown>>();

beforeAll(async () => {
  for (const name of PACKAGES) {
    exported.set(name, await import(pathToFileURL(path.resolve('packages', name, 'lib/index.js')).href));
  }
});

/** The classes of errors in the sources: name, base and additional fields. */
function errorClasses(): { readonly name: string; readonly base: string; readonly fields: readonly string[] }[] {
  const found = new Map<string, { base: string; fields: string[] }>();
  for (const name of PACKAGES) {
    for (const file of readdirSync(path.join('packages', name, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue;
      const text = readFileSync(path.join('packages', name, 'src', file), 'utf8');
      for (const match of text.matchAll(/^export class (\w+Error) extends (\w+)[^{]*\{(\}|[\s\S]*?\n\})/gm)) {
        const [, error, base, body] = match as unknown as [string, string, string, string];
        found.set(error, { base, fields: [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, field]) => field!) });
      }
    }
  }
  const isOurs = (name: string | undefined): boolean =>
    name === 'ShardtoolError' || (name !== undefined && isOurs(found.get(name)?.base));
  return [...found].filter(([name]) => isOurs(name)).map(([name, rest]) => ({ name, ...rest }));
}

test('each package exports exactly the names of the reviewed list', async () => {
  const lists = [...exported].map(
    ([name, all]) =>
      `${name}\n${Object.keys(all)
        .sort()
        .map((one) => `  ${one}\n`)
        .join('')}`,
  );
  await expect(lists.join('\n')).toMatchFileSnapshot('fixtures/public-exports.txt');
});

test('no index of a package re-exports everything of a module or another package', () => {
  // The index of shardtool re-exports a file that is a list of names.
  const passedOn = PACKAGES.map((name) => [
    name,
    [...readFileSync(`packages/${name}/src/index.ts`, 'utf8').matchAll(/^export \*.*$/gm)].map(([line]) => line),
  ]);
  expect(Object.fromEntries(passedOn)).toEqual({
    ...Object.fromEntries(PACKAGES.map((name) => [name, []])),
    cli: ["export * from './errors.js';"],
  });
  const lines = readFileSync('packages/cli/src/errors.ts', 'utf8').match(/^export .*$/gm)!;
  expect(lines.filter((line) => !/^export \{/.test(line))).toEqual([]);
});

test('every error that a caller can receive is exported from shardtool', () => {
  const classes = errorClasses();
  expect(classes.length).toBeGreaterThan(40);
  const all = exported.get('cli')!;
  expect(classes.map(({ name }) => name).filter((name) => typeof all[name] !== 'function')).toEqual([]);
});

test('every error that a caller can receive is in docs/errors.md, with its base class and its fields', () => {
  const rows = readFileSync('docs/errors.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| <a id="'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  for (const row of rows) {
    const [, id, name] = /^<a id="(\w+)"><\/a>(`(\w+)`)$/.exec(row[1]!)!;
    expect(`\`${id}\``).toBe(name!.toLowerCase());
    row[1] = name!;
  }
  const documented = rows.map(([, name, base, fields]) => [name, base, fields]);
  const expected = errorClasses().map(({ name, base, fields }) => {
    return [`\`${name}\``, `\`${base}\``, fields.length === 0 ? '–' : fields.map((field) => `\`${field}\``).join(', ')];
  });
  const byName = (a: readonly unknown[], b: readonly unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1);
  expect(documented.sort(byName)).toEqual(expected.sort(byName));
  for (const [, , , , when, remedy] of rows) expect(when!.endsWith('.') && remedy!.endsWith('.')).toBe(true);
});

type Kind = new (where: object, message: string, cause?: Error) => ShardtoolError;

const CONTEXT = { path: 'a.tar', key: 'a', paths: ['a', 'b'], status: 403, trouble: 'cut', call: 'cuInit', result: 1 };

test('every error has its class as name, a code and a section of the docs, and can be converted to JSON', () => {
  const page = readFileSync('docs/errors.md', 'utf8');
  const all = exported.get('cli')! as Readonly<Record<string, Kind>>;
  const errors = errorClasses().map(({ name }) => [name, new all[name]!(CONTEXT, 'why', new Error('cause'))] as const);
  for (const [name, error] of errors) {
    expect(error.name).toBe(name);
    expect(error.code).toMatch(/^ERR_SHARDTOOL(_[A-Z0-9]+)*$/);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name, code: error.code, message: error.message });
    expect(page).toContain(`<a id="${error.help.replace('docs/errors.md#', '')}"></a>`);
  }
  expect(new Set(errors.map(([, { code }]) => code)).size).toBe(errors.length);
  expect(new all.FileNotFoundError!({}, 'why').code).toBe('ERR_SHARDTOOL_FILE_NOT_FOUND');
});

test('errors of a minified copy of shardtool keep their names, and are instances of the classes of another copy', async () => {
  const bundle = await rolldown({
    input: path.resolve('packages/base/lib/index.js'),
    platform: 'node',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  const file = path.join(emptyFolder(), 'copy.mjs');
  writeFileSync(file, output[0].code);
  const copy = (await import(pathToFileURL(file).href)) as Readonly<Record<string, Kind>>;
  const here = exported.get('base')! as Readonly<Record<string, Kind>>;
  const error = new copy.FileNotFoundError!({ path: 'a' }, 'why');
  expect([error.name, error.code]).toEqual(['FileNotFoundError', 'ERR_SHARDTOOL_FILE_NOT_FOUND']);
  const kinds = ['FileNotFoundError', 'FileError', 'ShardtoolError', 'OptionError', 'FileExistsError'];
  expect(kinds.map((kind) => error instanceof here[kind]!)).toEqual([true, true, true, false, false]);
  expect([null, 'x', {}, new Error('x')].some((value) => value instanceof here.ShardtoolError!)).toBe(false);
});

test('the types of each entry of a package come first, as TypeScript requires', () => {
  for (const name of PACKAGES) {
    const { exports } = JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')) as { exports: object };
    for (const entry of Object.values(exports)) expect(Object.keys(entry as object)[0], name).toBe('types');
  }
});
