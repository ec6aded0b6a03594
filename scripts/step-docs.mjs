/**
 * Writes what is said of a transform's steps from their table: docs/transforms.md, the types of StepInput with their hover texts,
 * and Python's typed dictionaries. A test compares them with the table.
 *
 *     npm run build && node scripts/step-docs.mjs
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { STEPS } from '#reader/step-table';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BEGIN = '<!-- made by scripts/step-docs.mjs -->';
const END = '<!-- end -->';

/** The files that are made, by name: what each has to be. */
export function madeFiles() {
  return {
    'docs/transforms.md': withTables(readFileSync(path.join(root, 'docs/transforms.md'), 'utf8')),
    'packages/reader/src/transform/step-inputs.ts': typescript(),
    'python/src/shardtool/steps.py': python(),
  };
}

const steps = Object.entries(STEPS);
const text = (value) => (value === undefined ? '' : JSON.stringify(value, rounded).replaceAll(',', ', '));
const rounded = (_key, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value);
const isNeeded = ({ default: value, isOptional }) => value === undefined && isOptional !== true;
const capital = (name) => name[0].toUpperCase() + name.slice(1);
const snake = (name) => name.replaceAll('IoU', 'Iou').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Those that are written otherwise in Python. */
const NAMES = steps
  .flatMap(([name, { parameters }]) => [name, ...Object.keys(parameters)])
  .filter((name) => snake(name) !== name);

function withTables(page) {
  const [before, rest] = page.split(BEGIN);
  const after = rest.slice(rest.indexOf(END));
  const overview = [
    '| step | what it does | torchvision v2 | how near |',
    '|---|---|---|---|',
    ...steps.map(
      ([name, { help, like, tolerance }]) =>
        `| [\`${name}\`](#${name.toLowerCase()}) | ${help} | ${like ?? '-'} | ${tolerance} |`,
    ),
  ];
  const each = steps.flatMap(([name, { parameters }]) => [
    `### ${name}`,
    '',
    ...(Object.keys(parameters).length === 0
      ? ['No parameters.']
      : [
          '| parameter | values | default | |',
          '|---|---|---|---|',
          ...Object.entries(parameters).map(
            ([parameter, entry]) =>
              `| \`${parameter}\` | ${entry.takes} | ${isNeeded(entry) ? 'needed' : text(entry.default)} | ${entry.help} |`,
          ),
        ]),
    '',
  ]);
  return `${before}${BEGIN}\n\n${[...overview, '', ...each].join('\n')}\n${after}`;
}

function typescript() {
  const lines = [
    '// Made by scripts/step-docs.mjs from the table of steps; a test compares the two.',
    '',
    ...steps.flatMap(([name, { help, like, parameters }]) => [
      `/** ${help}${like === null ? '' : ` torchvision: v2.${like}.`} */`,
      `export interface ${capital(name)}Input {`,
      `  readonly name: '${name}';`,
      ...Object.entries(parameters).flatMap(([parameter, entry]) => [
        `  /** ${hover(entry)} */`,
        `  readonly ${parameter}${isNeeded(entry) ? '' : '?'}: ${entry.typescript}${isNeeded(entry) ? '' : ' | undefined'};`,
      ]),
      '}',
      '',
    ]),
    '/** A step as it is written: parameters with a default may be left out. */',
    'export type StepInput =',
    ...steps.map(([name], i) => `  | ${capital(name)}Input${i === steps.length - 1 ? ';' : ''}`),
    '',
  ];
  return lines.join('\n');
}

function hover(entry) {
  const preset = entry.default === undefined ? '' : ` Default ${text(entry.default)}.`;
  return `${entry.help} ${capital(entry.takes)}.${preset}`;
}

function python() {
  const lines = [
    '"""The steps of a transform, as typed dictionaries. Made by scripts/step-docs.mjs from the reader\'s table of steps."""',
    '',
    'from __future__ import annotations',
    '',
    'from typing import TYPE_CHECKING, TypedDict, Union',
    '',
    'if TYPE_CHECKING:',
    '    from typing import Literal, Sequence',
    ...steps.flatMap(([name, { help, like, parameters }]) => {
      const entries = Object.entries(parameters);
      const needed = entries.filter(([, entry]) => isNeeded(entry));
      const others = entries.filter(([, entry]) => !isNeeded(entry));
      const names = [...new Set([snake(name), name, like ?? name])].map((one) => `"${one}"`).join(', ');
      const said = docstring(inPython(help), like);
      const first = [`    name: Literal[${names}]`, ...needed.flatMap(pythonLines)];
      if (others.length === 0) return ['', '', `class ${capital(name)}(TypedDict):`, said, '', ...first];
      return [
        '',
        '',
        `class _${capital(name)}(TypedDict):`,
        ...first,
        '',
        '',
        `class ${capital(name)}(_${capital(name)}, total=False):`,
        said,
        '',
        ...others.flatMap(pythonLines),
      ];
    }),
    '',
    '',
    '#: A step of a transform.',
    'Step = Union[',
    ...steps.map(([name]) => `    ${capital(name)},`),
    ']',
    '',
  ];
  return lines.join('\n');
}

function pythonLines([parameter, entry]) {
  return [...comment(inPython(hover(entry))), `    ${snake(parameter)}: ${entry.python}`];
}

/** Steps and parameters under the names that Python has for them. */
function inPython(said) {
  return NAMES.reduce((now, name) => now.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), snake(name)), said);
}

function docstring(help, like) {
  const [first, ...others] = wrapped(help, '   ');
  const more = [...others, ...(like === null ? [] : ['', `    torchvision: v2.${like}.`])];
  const opened = `    """${first.trim()}`;
  return more.length === 0 ? `${opened}"""` : [opened, ...more, '    """'].join('\n');
}

function comment(line) {
  return wrapped(line, '    #:');
}

/** Lines of up to 116 characters. */
function wrapped(line, begin) {
  const lines = [];
  let now = begin;
  for (const word of line.split(' ')) {
    if (now.length + word.length > 115) {
      lines.push(now);
      now = begin;
    }
    now += ` ${word}`;
  }
  return [...lines, now];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, content] of Object.entries(madeFiles())) writeFileSync(path.join(root, file), content);
}
