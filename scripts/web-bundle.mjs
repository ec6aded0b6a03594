/**
 * Bundles a module for browsers. The modules are those that Node runs, with three exceptions: `NAME.web.ts` replaces the
 * `NAME.ts` next to it, `packages/base/src/web` replaces the parts of Node that readers use, and every other function of Node
 * throws, because only code for local files calls it.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const packages = fileURLToPath(new URL('../packages', import.meta.url));
const web = path.join(packages, 'base/dist/web');
const require = createRequire(import.meta.url);

/** Modules of Node with a replacement for browsers. */
const NODE = {
  'node:buffer': 'buffer',
  'node:crypto': 'crypto',
  'node:timers/promises': 'timers',
  'node:zlib': 'zlib',
};
/** Layouts that browsers read. Loading another layout throws an error that lists these. */
const LAYOUTS = ['msgpack', 'parquet', 'tar'];
const GLOBALS = {
  Buffer: { file: 'buffer', name: 'WebBuffer' },
  process: { file: 'process', name: 'process' },
};

/** Packages that only other kinds of storage need. */
const ABSENT = /^(@aws-sdk|@smithy)\//;
/** A module that only writers need. It tries to compile a function from text, and browsers report that if a page has a policy. */
const WRITER = 'msgpackr/pack';

export const FOR_BROWSERS = {
  name: 'for-browsers',
  resolveId(id, importer) {
    if (id === WRITER) return { id: `\0${id}`, moduleSideEffects: false };
    if (id.startsWith('node:')) return { id: `\0${id}`, moduleSideEffects: false };
    const own = /^@shardtool\/(\w+)(?:\/([\w-]+))?$/.exec(id);
    if (own !== null) return moduleOf(own[1], own[2] ?? 'index');
    if (!id.startsWith('.') || importer === undefined) return null;
    const file = path.resolve(path.dirname(importer), id);
    const layout = /format\/dist\/layouts\/(\w+)\/index\.js$/.exec(file)?.[1];
    const isLoaded = layout !== undefined && importer.endsWith(`/${layout}/entry.js`);
    if (isLoaded && !LAYOUTS.includes(layout)) return { id: `\0layout:${layout}`, moduleSideEffects: true };
    const forms = ['js', 'ts', 'tsx'].map((extension) => file.replace(/\.js$/, `.web.${extension}`));
    return forms.find((form) => form !== file && form !== importer && existsSync(form)) ?? null;
  },
  load(id) {
    if (id === `\0${WRITER}`)
      return 'export class Packr { pack() { throw new Error("Browsers cannot write shards."); } }';
    if (id.startsWith('\0node:')) return standIn(id.slice(1));
    const layout = /^\0layout:(\w+)$/.exec(id)?.[1];
    if (layout === undefined) return null;
    const message = `Browsers read shards of the layouts ${LAYOUTS.join(', ')}, and these have the layout ${layout}: convert them with "shardtool convert".`;
    const base = JSON.stringify(path.join(packages, 'base/dist/errors.js'));
    return [
      `import { UnsupportedShardError } from ${base};`,
      `function refuse() { throw new UnsupportedShardError({}, ${JSON.stringify(message)}); }`,
      `export const ${layout} = refuse();`,
    ].join('\n');
  },
  transform(code, id) {
    if (!id.startsWith(packages) || id.includes('node_modules') || id.startsWith(web)) return null;
    const used = Object.entries(GLOBALS).filter(([name]) => new RegExp(`\\b${name}[.)\\]]`).test(code));
    if (used.length === 0) return null;
    const imports = used.map(([name, from]) => {
      return `import { ${from.name} as ${name} } from ${JSON.stringify(path.join(web, `${from.file}.js`))};`;
    });
    return `${imports.join('')}${code}`;
  },
};

/** A module of one of our packages, by its name in `exports`. */
function moduleOf(name, part) {
  const { exports } = require(path.join(packages, name, 'package.json'));
  const types = exports[part === 'index' ? '.' : `./${part}`]?.types['shardtool-source'];
  if (types === undefined) return null;
  const file = path.join(packages, name, types.replace(/\.d\.ts$/, '.js'));
  const instead = file.replace(/\.js$/, '.web.js');
  return existsSync(instead) ? instead : file;
}

/** The exports of a module of Node: its replacement for browsers, and functions that throw. */
async function standIn(id) {
  const part = NODE[id] === undefined ? null : path.join(web, 'node', `${NODE[id]}.js`);
  const there = part === null ? [] : Object.keys(await import(part));
  const names = Object.keys(await import(id)).filter((name) => {
    return !['default', 'module.exports', 'constants', ...there].includes(name);
  });
  return [
    ...(part === null ? [] : [`export * from ${JSON.stringify(part)};`]),
    `function absent(name) { throw new Error(name + ${JSON.stringify(` of Node's ${id.slice(5)} does not exist in browsers.`)}); }`,
    ...names.map((name) => `export function ${name}() { absent(${JSON.stringify(name)}); }`),
    'export const constants = {};',
    'export default /* @__PURE__ */ new Proxy({}, { get: (_, name) => () => absent(String(name)) });',
  ].join('\n');
}

/** Returns the build of `file`, which throws if a module is missing. */
export function rolldownForBrowsers(input, options = {}) {
  return rolldown({
    input,
    platform: 'browser',
    plugins: [FOR_BROWSERS],
    external: (id) => ABSENT.test(id),
    treeshake: { moduleSideEffects: (id) => /\0layout:|\/cli\/page\//.test(id) },
    checks: { eval: false, ineffectiveDynamicImport: false },
    ...options,
  });
}
