/**
 * Checks names of options in messages. A template without the tag `sentence`, and concatenated strings, spell an option for
 * TypeScript, also on the command line and in Python. So do names in camelCase in the message of an error. A flag such as
 * `--overwrite` exists only on the command line, so packages below that of the commands must name the option.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';

const root = fileURLToPath(new URL('..', import.meta.url));
const REFERENCES = new Set(['option', 'optionName', 'codeName', 'withCodeNames']);
/** A flag, except Node's. */
const FLAG = /(?:^|[\s"'`(])--(?!input-type)[a-z]+(?:-[a-z]+)*(?![a-z-])/;

const isReference = (node) => node.type === 'CallExpression' && REFERENCES.has(node.callee.name);
const isSentence = (node) => node.type === 'TaggedTemplateExpression' && node.tag.name === 'sentence';

/** Calls `visit` with each node and its ancestors, the nearest first. */
function walk(node, visit, around = []) {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) {
    for (const one of node) walk(one, visit, around);
    return;
  }
  if (typeof node.type !== 'string') return;
  visit(node, around);
  for (const value of Object.values(node)) walk(value, visit, [node, ...around]);
}

/** The nearest template or concatenation that turns a reference into text. Null if there is none, or if it is a sentence. */
function spelledBy(around) {
  for (const [i, outer] of around.entries()) {
    if (outer.type === 'CallExpression' || outer.type === 'ArrowFunctionExpression') return null;
    if (outer.type === 'TemplateLiteral') return isSentence(around[i + 1] ?? {}) ? null : outer;
    if (outer.type === 'BinaryExpression' && outer.operator === '+') return outer;
  }
  return null;
}

/** A command for the user to type, such as `"shardtool verify shards --fix"`. It may contain flags everywhere. */
const COMMAND = /["'`]?\b(shardtool|tar|npx|node|convert_imageset) [^"'`]*["'`]?/g;

/** The text of a node in which a user would see a flag, without commands. */
function textOf(node) {
  const isText = node.type === 'Literal' && typeof node.value === 'string';
  const text = isText ? node.value : (node.quasis ?? []).map(({ value }) => value.cooked).join('VALUE');
  return text.replaceAll(COMMAND, '');
}

/** Descriptions in tables of options are for the command line. */
const isHelp = (around) => around.some(({ type, key }) => type === 'Property' && key?.name === 'help');

/** A flag in an array is an argument for a program. */
const isArgument = ([parent]) => parent?.type === 'ArrayExpression';

/** A word in camelCase: the name of an option, a step or a parameter, which Python spells differently. */
const CODE_NAME = /^[a-z]+(?:[A-Z][a-z]+)+$/;

/** Functions of TypeScript and keys of other software's files, which have only one spelling. */
const OTHER_NAMES = new Set(['fileFormat', 'indexShards', 'planDataset', 'planMixture', 'scratchBytes']);

/** The first name in the text of a node that Python spells differently. */
function plainName(node) {
  const words = textOf(node).replaceAll('VALUE', ' ').match(/\w+/g) ?? [];
  return words.find((word) => CODE_NAME.test(word) && !OTHER_NAMES.has(word));
}

/** Whether the text of a node is the message of an error, without the tag `sentence` or a call that spells names. */
function isPlainMessage(node, around) {
  if (node.type !== 'Literal' && node.type !== 'TemplateLiteral') return false;
  const stop = around.findIndex(({ type }) => /^(New|Call|TaggedTemplate|ArrowFunction)Expression$/.test(type));
  const outer = around[stop];
  return outer?.type === 'NewExpression' && /Error$/.test(outer.callee.name ?? '');
}

/** Faults of a source file, as `line: what`. */
export function faultsOf(source, { hasFlags = false } = {}) {
  const faults = [];
  const add = (node, what) => faults.push(`${source.slice(0, node.start).split('\n').length}: ${what}`);
  walk(parseAst(source, { lang: 'ts' }), (node, around) => {
    if ((isReference(node) || isSentence(node)) && spelledBy(around) !== null)
      add(node, 'an option in a text without the tag "sentence" is spelled for TypeScript only');
    if (!hasFlags && isPlainMessage(node, around) && plainName(node) !== undefined)
      add(node, `"${plainName(node)}" in a text without the tag "sentence" is spelled for TypeScript only`);
    if (!hasFlags && FLAG.test(textOf(node)) && !isHelp(around) && !isArgument(around))
      add(node, `"${FLAG.exec(textOf(node))[0].trim()}" is a flag: name the option, as \${option('name')}`);
  });
  return faults;
}

function sources(folder) {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (name) =>
        name.endsWith('.ts') &&
        !name.includes('kernels/assembly') &&
        !name.endsWith('.test.ts') &&
        !name.endsWith('.d.ts'),
    )
    .map((name) => path.join(folder, name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = readdirSync(path.join(root, 'packages'));
  for (const file of packages.flatMap((name) => sources(`packages/${name}/src`))) {
    const hasFlags = file.startsWith('packages/cli/');
    for (const fault of faultsOf(readFileSync(path.join(root, file), 'utf8'), { hasFlags })) {
      console.log(`${file}:${fault}`);
      process.exitCode = 1;
    }
  }
}
