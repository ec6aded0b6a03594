import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { allowed, type OptionEntry } from '@shardtool/base';
import { OPTION_GROUPS } from '@shardtool/base/text';
import { LOADER_OPTIONS, type LoaderOption } from '@shardtool/reader/option-table';
import { expect, test } from 'vitest';
import { compile, userProject } from './guides/user-project.js';
import { pythonWith, runPython } from './python.js';

const OPTIONS: readonly (readonly [string, LoaderOption])[] = Object.entries(LOADER_OPTIONS);
const IN_PYTHON = OPTIONS.filter(([, { python }]) => python !== false);

/** The type of an option in TypeScript. */
function typeOf(entry: OptionEntry): string {
  switch (entry.kind) {
    case 'switch':
      return 'boolean';
    case 'choice':
      return entry.values.map((value) => `'${value}'`).join(' | ');
    case 'whole':
      return 'number';
    case 'bytes':
      return 'number | string';
    case 'texts':
      return 'readonly string[]';
    case 'classes':
      return 'readonly (string | number)[]';
    case 'own':
      return entry.type;
    default:
      return 'string';
  }
}

/** The same in Python, if the table does not contain it. */
function pythonTypeOf(entry: LoaderOption): string {
  if (typeof entry.python === 'string') return entry.python;
  if (entry.kind === 'switch') return 'bool';
  if (entry.kind === 'choice') return `Literal[${entry.values.map((value) => `'${value}'`).join(', ')}]`;
  if (entry.kind === 'texts') return 'Sequence[str]';
  if (entry.kind === 'classes') return 'Sequence[str | int]';
  if (entry.kind === 'bytes') return 'int | str';
  return entry.kind === 'whole' ? 'int' : 'str';
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A program that compiles if the types are those of the table. */
function programOf(options: typeof OPTIONS): string {
  const types =
    "import type { AnnotationOptions, BucketsInput, LabelsInput, LoaderOptions, MetricsOptions, MixInput, CustomSteps, ScheduledTransform, TransformInput, ViewPresetName, ViewsFile, ViewsInput } from 'shardtool';";
  const same = 'type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;';
  // The type of weights is not exported.
  const weights = "type Weights = NonNullable<LoaderOptions['weights']>;";
  const names = options.map(([name]) => `'${name}'`).join(' | ');
  const checks = options.map(
    ([name, entry]) =>
      `export const ${name}: Same<LoaderOptions['${name}'], ${typeOf(entry)}${entry.kind === 'own' && entry.type === 'unknown' ? '' : ' | undefined'}> = true;`,
  );
  return [types, same, weights, `export const names: Same<keyof LoaderOptions, ${names}> = true;`, ...checks].join(
    '\n',
  );
}

test('the TypeScript options of the loader have the names and types of the table', () => {
  const folder = userProject();
  const [first, ...others] = OPTIONS;
  writeFileSync(path.join(folder, 'same.ts'), programOf(OPTIONS));
  // A changed table is detected.
  writeFileSync(path.join(folder, 'changed.ts'), programOf([[first![0], { kind: 'switch', help: '' }], ...others]));
  writeFileSync(path.join(folder, 'renamed.ts'), programOf([['seeds', first![1]], ...others]));
  const faults = compile(folder);
  expect(faults).toMatch(/^\S*changed\.ts.*\n(\S*renamed\.ts.*\n)+$/);
});

const python = pythonWith();

const HINTS = `
import json, os, sys, typing
from typing import *
sys.path.insert(0, "python/src")
import importlib.util
spec = importlib.util.spec_from_file_location("options", "python/src/shardtool/options.py")
options = importlib.util.module_from_spec(spec)
sys.modules["options"] = options
spec.loader.exec_module(options)
# It imports these for type checkers alone.
options.Literal = typing.Literal
options.ArrayLike = Sequence[float]
names = {name: getattr(typing, name) for name in typing.__all__} | vars(options)
hints = typing.get_type_hints(options.LoaderOptions, names)
expected = {name: eval(f"Optional[{text}]", names) for name, text in json.load(sys.stdin).items()}
wrong = [name for name in hints if name in expected and hints[name] != expected[name]]
print(json.dumps({"names": sorted(hints), "wrong": wrong}))
`;

test.skipIf(python === null)("the typed dictionary of Python's loader has the names and types of the table", () => {
  const expected = Object.fromEntries(IN_PYTHON.map(([name, entry]) => [snake(name), pythonTypeOf(entry)]));
  const found = runPython<{ names: string[]; wrong: string[] }>(HINTS, expected, python!);
  expect(found).toEqual({ names: Object.keys(expected).sort(), wrong: [] });
  const changed = { ...expected, seed: 'str' };
  expect(runPython<{ wrong: string[] }>(HINTS, changed, python!).wrong).toEqual(['seed']);
});

test('docs/loader-options.md equals the page generated from the table', async () => {
  await expect(page()).toMatchFileSnapshot('../docs/loader-options.md');
});

function page(): string {
  const code = (text: string) => `\`${text}\``;
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const rowOf = ([name, entry]: (typeof OPTIONS)[number]) => {
    const inPython = entry.python === false ? '' : snake(name) === name ? 'the same' : code(snake(name));
    const commands = entry.commands?.map((command) => command) ?? [];
    const flag = commands.length === 0 ? '' : code(`--${entry.flag ?? snake(name).replaceAll('_', '-')}`);
    const what = allowed(entry).replace(/^is /, '').replaceAll('"', '`');
    const cells = [
      code(name),
      inPython,
      what,
      leftOut(entry),
      entry.help,
      [flag, commands.join(', ')].filter(Boolean).join(' of '),
    ];
    return `| ${cells.map(cell).join(' | ')} |`;
  };
  const groups = OPTION_GROUPS.map((group) => [group, OPTIONS.filter(([, entry]) => entry.group === group)] as const);
  expect(groups.flatMap(([, options]) => options)).toHaveLength(OPTIONS.length);
  return [
    "# A loader's options",
    '',
    '`dataset.loader({ ... })` and `shardtool.Loader(location, ...)` take these options. In Python, use snake_case; `None` means the default.',
    'Unknown names and invalid values raise when the loader is created. The last column names the flag of `bench`, `plan` and `preview`. A test',
    'generates these tables from `packages/reader/src/loader/option-table.ts`.',
    '',
    ...groups
      .filter(([, options]) => options.length > 0)
      .flatMap(([group, options]) => [
        `## ${group}`,
        '',
        '| option | in Python | value | default | meaning | flag |',
        '|---|---|---|---|---|---|',
        ...options.map(rowOf),
        '',
      ]),
    '## Not in the tables',
    '',
    'These options choose what is opened. They are arguments of `shardtool.Loader` and `shardtool.Dataset` in Python, and of `openDataset` in',
    'TypeScript: `overlay`, `split` and `exclude_keys` ([Overlays](overlays.md)), `layout` and `features` ([Other formats](other-formats.md)),',
    '`version` ([Living datasets](living-datasets.md)), `storage` ([Remote data](remote.md)), and `max_sample_bytes`.',
    '',
    'In Python, use `state_dict` and `load_state_dict` instead of `state`, and `close` instead of `signal`. The [Python guide](../python/README.md)',
    'describes the arguments that only Python has (`output`, `with_keys`, `device`, `python_transform` and others). The',
    '[README of @shardtool/cuda](../packages/cuda/README.md) describes `device` in TypeScript.',
    '',
  ].join('\n');
}

function leftOut(entry: OptionEntry): string {
  if (entry.shown !== undefined) return entry.shown ?? '';
  if (!('default' in entry) || entry.default === undefined) return '';
  if (Array.isArray(entry.default)) return 'none';
  return typeof entry.default === 'number' ? entry.default.toLocaleString('en-US') : String(entry.default);
}
