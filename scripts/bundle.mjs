/**
 * Bundles the hundreds of modules that tsc compiled for a package (dist) into a few files (lib). These files run and are
 * published, because Node takes about a millisecond for each ES module, in every process and every worker thread. Imports of
 * dependencies, optional dependencies and peer dependencies in package.json stay imports. Everything else that is imported is
 * copied into lib, with its licence. lib also has the published declarations, and those of zod that they refer to. Within this
 * repository, which has zod, the condition "shardtool-source" of package.json points to the declarations in dist.
 */

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { rolldownForBrowsers } from './web-bundle.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Entry modules of each package: `index` is imported, the others are started as worker threads and programs. */
const PACKAGES = {
  base: ['index', 'text'],
  storage: ['index'],
  format: ['index', 'layouts/hdf5/hdf5-thread'],
  reader: [
    'index',
    'open/open-files',
    'loader/option-table',
    'open/measure-step',
    'bridge/main',
    'bridge/serve-reader',
    'bridge/bridge',
  ],
  cuda: ['index'],
  writer: [
    'index',
    'option-table',
    'pack/workers/pack-worker',
    'pack/workers/pack-process',
    'python-writer',
    'convert/convert-worker',
    'repair/repair-worker',
    'verify/verify-worker',
  ],
  cli: ['index', 'main'],
};
/**
 * Threads of a loader. Each is one file with only the parts of our packages that it uses, and files that it loads later. This makes
 * a thread start in two thirds of the CPU time. It is CommonJS, which starts in 4 to 14 ms less.
 */
const THREADS = { reader: 'loader/work/decode-worker', storage: 'threads/remote/remote-thread' };
const BELOW_THREADS = { reader: ['base', 'storage', 'format'], storage: ['base'] };
/** Threads that wait for slow files, also started by the dozen. As a few CommonJS modules, they start in a quarter less CPU time. */
const WAITING_THREADS = { storage: ['threads/local/local-thread', 'threads/local/opener/opener-process'] };
/** Modules for browsers, by package, bundled with the parts of our packages that they use: `import ... from 'shardtool/web'`. */
const FOR_BROWSERS = { cli: 'web' };
/** Platforms whose libraries of @julusian/jpeg-turbo are copied, without its build dependencies and its install script. */
const TURBOJPEG = ['linux-x64', 'linux-x64-musl', 'linux-arm64'];

/** Bundles each package whose lib is older than its sources. vitest calls this before the first test. */
export async function setup() {
  for (const [name, entries] of Object.entries(PACKAGES)) {
    const folder = path.join(root, 'packages', name);
    if (!isOld(folder, belowOf(name))) continue;
    await bundle(folder, entries, THREADS[name], WAITING_THREADS[name], FOR_BROWSERS[name]).catch((error) => {
      // A partial lib would look up to date the next time.
      rmSync(path.join(folder, 'lib'), { recursive: true, force: true });
      throw error;
    });
  }
}

/** Packages whose modules are bundled into files of package `name`. */
function belowOf(name) {
  if (FOR_BROWSERS[name] !== undefined) return [...BELOW_THREADS.reader, 'reader'];
  return BELOW_THREADS[name] ?? [];
}

/** Whether a source of lib is newer than lib, including those in the packages `others`. */
function isOld(folder, others) {
  const built = path.join(folder, 'lib/index.js');
  if (!existsSync(built)) return true;
  const made = statSync(built).mtimeMs;
  const below = others.map((name) => path.join(root, 'packages', name, 'dist'));
  const inputs = [path.join(folder, 'dist'), path.join(folder, 'page'), ...below].flatMap((within) => {
    if (!existsSync(within)) return [];
    return readdirSync(within, { recursive: true })
      .filter((file) => /\.(c?js|wasm|tsx?|css|html|svg)$/.test(file))
      .map((file) => path.join(within, file));
  });
  const scripts = ['bundle.mjs', 'web-bundle.mjs'].map((name) => path.join(root, 'scripts', name));
  return [...inputs, ...scripts].some((file) => statSync(file).mtimeMs >= made);
}

async function bundle(folder, entries, thread, waiting = [], forBrowsers = undefined) {
  const dist = path.join(folder, 'dist');
  const lib = path.join(folder, 'lib');
  const own = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const imported = Object.keys({ ...own.dependencies, ...own.optionalDependencies, ...own.peerDependencies });
  const options = {
    platform: 'node',
    checks: { ineffectiveDynamicImport: false, eval: false },
    external: (id) => id.startsWith('node:') || imported.some((name) => id === name || id.startsWith(`${name}/`)),
  };
  const started = entries.map((entry) => [path.basename(entry), path.join(dist, `${entry}.js`)]);
  const build = await rolldown({
    ...options,
    // All files are next to each other, so that './worker.js' is found from any of them.
    input: Object.fromEntries(started),
    plugins: [quickWidth(path.join(dist, 'terminal/text-width.js')), LMDB_ADDON],
    // togetherFor requires this. An entry that is a separate file exports no more than before.
    preserveEntrySignatures: 'allow-extension',
  });
  rmSync(lib, { recursive: true, force: true });
  const { output } = await build.write({
    dir: lib,
    format: 'esm',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: { groups: [togetherFor(started)], includeDependenciesRecursively: false },
  });
  await build.close();
  const modules = output.flatMap(({ moduleIds }) => moduleIds ?? []);
  for (const file of readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.wasm'))) {
    copyFileSync(path.join(dist, file), path.join(lib, path.basename(file)));
  }
  // CommonJS files run unchanged.
  for (const file of readdirSync(dist).filter((file) => file.endsWith('.cjs'))) {
    const text = readFileSync(path.join(dist, file), 'utf8');
    writeFileSync(path.join(lib, file), text.replace(/\n\/\/# sourceMappingURL=.*/, ''));
  }
  if (thread !== undefined) modules.push(...(await bundleThread(path.join(dist, `${thread}.js`), lib, options, own)));
  for (const file of waiting) {
    const one = await rolldown({
      ...options,
      input: path.join(dist, `${file}.js`),
      treeshake: { moduleSideEffects: false },
    });
    await one.write({ file: path.join(lib, `${path.basename(file)}.cjs`), format: 'cjs', codeSplitting: false });
    await one.close();
  }
  if (forBrowsers !== undefined) modules.push(...(await bundleForBrowsers(path.join(dist, `${forBrowsers}.js`), lib)));
  if (existsSync(path.join(folder, 'page'))) modules.push(...(await bundlePage(folder)));
  copyTypes(folder, own);
  const parts = partsOf(modules);
  if (own.name === '@shardtool/reader') parts.push(...turboJpeg(folder, lib));
  if (parts.length > 0) writeParts(parts, lib);
}

/**
 * Puts modules that the same entries load at their start into one file. Otherwise modules that are loaded later would split it
 * into dozens of files, and each file costs Node about a millisecond in every process and thread.
 */
function togetherFor(entries) {
  let names;
  const name = (id, graph) => {
    names ??= namesByEntries(entries, graph);
    return names.get(id) ?? null;
  };
  return { name, debugName: 'by entries', tags: ['$initial'] };
}

/** The names of all entries that import a module statically, by module. The entries themselves are separate files. */
function namesByEntries(entries, graph) {
  const names = new Map();
  for (const [name, file] of entries) {
    const reached = new Set([file]);
    for (const id of reached) {
      names.set(id, names.has(id) ? `${names.get(id)}-${name}` : name);
      for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) reached.add(imported);
    }
  }
  for (const [, file] of entries) names.delete(file);
  return names;
}

/** Copies the declarations that `exports` points to, and those that they import from the package itself and from zod. */
function copyTypes(folder, { exports }) {
  const zod = path.join(folder, 'node_modules/zod');
  const types = path.join(folder, 'lib/types');
  const placeOf = (file) => {
    const within = path.relative(zod, file);
    return path.join(
      types,
      within.startsWith('..') ? path.relative(path.join(folder, 'dist'), file) : path.join('zod', within),
    );
  };
  const copied = new Set();
  const copy = (file) => {
    if (copied.has(file)) return;
    copied.add(file);
    const text = readFileSync(file, 'utf8').replaceAll(IMPORTED, (all, before, name) => {
      const found = declarationsOf(name, file, zod);
      if (found === null) return all;
      copy(found);
      const to = path.relative(path.dirname(placeOf(file)), placeOf(found)).replace(/\.d\.ts$/, '.js');
      return `${before}'${to.startsWith('.') ? to : `./${to}`}'`;
    });
    mkdirSync(path.dirname(placeOf(file)), { recursive: true });
    writeFileSync(placeOf(file), text);
  };
  for (const { types } of Object.values(exports)) copy(path.join(folder, types.default.replace('lib/types', 'dist')));
}

/** An import in a declaration, in any syntax. */
const IMPORTED = /((?:\bfrom|\bimport)\s*\(?\s*)["']([^"'\n]+)["']/g;

/** The imported file of declarations, or null if it belongs to a package other than this one and zod. */
function declarationsOf(name, file, zod) {
  if (name.startsWith('.')) return path.join(path.dirname(file), name.replace(/\.js$/, '.d.ts'));
  if (!/^zod($|\/)/.test(name)) return null;
  // Comments in zod's declarations mention modules that do not exist.
  const found = path.join(zod, name.slice('zod'.length), 'index.d.ts');
  return existsSync(found) ? found : null;
}

/** Bundles the file of a thread, with the parts of our other packages that it uses, and the parts that it loads later. Returns its modules. */
async function bundleThread(file, lib, options, own) {
  const build = await rolldown({
    ...options,
    input: { [path.basename(file, '.js')]: file },
    plugins: [OWN_PACKAGES],
    external: (id) => !id.startsWith('@shardtool/') && options.external(id),
    treeshake: { moduleSideEffects: false },
  });
  const { output } = await build.write({
    ...{ dir: lib, format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: 'thread-[name]-[hash].cjs' },
  });
  await build.close();
  refuseMissing(own, output);
  const [other] = partsOf(output.find(({ isEntry }) => isEntry).moduleIds);
  if (other !== undefined) throw new Error(`${file} would load ${other.name} in every thread. Remove the import.`);
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
}

/** Bundles the module that browsers import, and the parts that it loads later. Returns its modules. */
async function bundleForBrowsers(file, lib) {
  const build = await rolldownForBrowsers({ web: file });
  const { output } = await build.write({
    dir: path.join(lib, 'web'),
    format: 'esm',
    minify: true,
    chunkFileNames: '[name]-[hash].js',
  });
  await build.close();
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
}

/** A thread with bundled packages resolves their optional dependencies from its own package, so that package must list those that it loads. */
function refuseMissing({ name, optionalDependencies }, output) {
  const code = output.map((chunk) => chunk.code).join('\n');
  for (const below of BELOW_THREADS[name.split('/')[1]]) {
    const file = path.join(root, 'packages', below, 'package.json');
    const wanted = Object.keys(JSON.parse(readFileSync(file, 'utf8')).optionalDependencies ?? {});
    // The name of a platform is added to the name of a package when it is loaded.
    const loaded = wanted.filter((one) => code.includes(`${one.split('/')[0]}/`));
    const missing = loaded.filter((one) => !Object.hasOwn(optionalDependencies ?? {}, one));
    if (missing.length > 0)
      throw new Error(
        `${name} bundles ${below} into a thread, so it also needs its optional dependencies: ${missing.join(', ')}.`,
      );
  }
}

/** Resolves our packages to the modules that tsc compiled. */
const OWN_PACKAGES = {
  name: 'own-packages',
  resolveId(id) {
    const [, name, part = 'index'] = /^@shardtool\/(\w+)(?:\/(\w+))?$/.exec(id) ?? [];
    return name === undefined ? null : path.join(root, 'packages', name, 'dist', `${part}.js`);
  },
};

/** Replaces string-width by the faster implementation of the command line, if the package has it. */
function quickWidth(file) {
  return {
    name: 'quick-width',
    resolveId: (id, importer) => (id === 'string-width' && importer !== file && existsSync(file) ? file : null),
  };
}

/** lmdb looks for its addon next to its own package.json. This makes it load the addon of the platform. */
const LMDB_ADDON = {
  name: 'lmdb-addon',
  resolveId: (id) => (id === 'node-gyp-build-optional-packages' ? '\0lmdb-addon' : null),
  load: (id) => (id === '\0lmdb-addon' ? LMDB_LOADER : null),
};
const LMDB_LOADER = `
  import { createRequire } from 'node:module';
  const libc = process.platform !== 'linux' ? '' : process.report.getReport().header.glibcVersionRuntime ? '.glibc' : '.musl';
  export default () =>
    createRequire(import.meta.url)(\`@lmdb/lmdb-\${process.platform}-\${process.arch}/node.napi\${libc}.node\`);
`;

/** The third-party packages that these modules belong to, sorted by name. */
function partsOf(modules) {
  const folders = new Set(
    modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id.replace(/^\0/, ''))?.[0] ?? []),
  );
  return Array.from(folders, partIn).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function partIn(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const by = typeof author === 'string' ? author : author?.name;
  const text =
    file === undefined
      ? `Licence: ${license}${by ? `. By ${by}.` : '.'}`
      : readFileSync(path.join(folder, file), 'utf8');
  return { name, version, license, text };
}

/** Copies the libraries that decode JPEGs. */
function turboJpeg(folder, lib) {
  const from = path.dirname(
    createRequire(path.join(folder, 'package.json')).resolve('@julusian/jpeg-turbo/package.json'),
  );
  for (const platform of TURBOJPEG) {
    const library = 'libturbojpeg.so.0';
    cpSync(
      path.join(from, 'prebuilds', `jpeg-turbo-${platform}`, library),
      path.join(lib, 'turbojpeg', platform, library),
    );
  }
  const text = readFileSync(path.join(folder, 'libjpeg-turbo.LICENSE.md'), 'utf8');
  return [partIn(from), { name: 'libjpeg-turbo', version: '3.1', license: 'IJG AND BSD-3-Clause AND Zlib', text }];
}

/** Writes the list of third-party packages in lib: with the texts of the licences for people, and as JSON for programs. */
function writeParts(parts, lib) {
  const title = ({ name, version, license }) => `${name} ${version} (${license})`;
  const line = '='.repeat(80);
  const texts = parts.map((part) => `${line}\n${title(part)}\n${line}\n\n${part.text.trim()}\n`);
  const head = `This folder contains parts of these packages:\n\n${parts.map((part) => `- ${title(part)}\n`).join('')}`;
  writeFileSync(path.join(lib, 'THIRD-PARTY.txt'), [head, ...texts].join('\n'));
  const list = parts.map(({ name, version, license }) => ({ name, version, license }));
  writeFileSync(path.join(lib, 'third-party.json'), `${JSON.stringify(list, null, 2)}\n`);
}

/** Bundles the page of `shardtool view` into one script with everything that it needs, so a browser sends no other requests. Returns its modules. */
async function bundlePage(folder) {
  const page = path.join(folder, 'page');
  const lib = path.join(folder, 'lib');
  const build = await rolldown({ input: path.join(page, 'main.tsx'), platform: 'browser' });
  const { output } = await build.write({ file: path.join(lib, 'page/app.js'), format: 'esm', minify: true });
  await build.close();
  for (const file of ['index.html', 'style.css', 'icon.svg'])
    copyFileSync(path.join(page, file), path.join(lib, 'page', file));
  const own = await rolldownForBrowsers(path.join(page, 'main.web.tsx'));
  const { output: ofStatic } = await own.generate({ format: 'esm', minify: true, codeSplitting: false });
  await own.close();
  if (ofStatic.length > 1) throw new Error('The page of view --static must be one script.');
  const texts = ['style.css', 'icon.svg'].map((file) => readFileSync(path.join(page, file), 'utf8'));
  writeFileSync(path.join(lib, 'page/static.html'), staticPage(ofStatic[0].code, ...texts));
  output.push(...ofStatic);
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
}

/** The page of `shardtool view --static`: one file that loads nothing. Its policy allows only its own script and style. */
function staticPage(code, style, icon) {
  // The browser's parser would end the script at an end tag or a comment.
  const script = code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)} 'wasm-unsafe-eval'`,
    `style-src ${hash(style)}`,
    'img-src blob: data:',
    'connect-src http: https:',
    "form-action 'none'",
    "base-uri 'none'",
  ];
  return `<!doctype html>
<!-- written by shardtool view --static -->
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${policy.join('; ')}">
    <meta name="referrer" content="no-referrer">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="shardtool-dataset" content="">
    <title>shardtool view</title>
    <link rel="icon" href="data:image/svg+xml;base64,${Buffer.from(icon).toString('base64')}">
    <style>${style}</style>
  </head>
  <body>
    <div id="app"></div>
    <script type="module">${script}</script>
  </body>
</html>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setup();
