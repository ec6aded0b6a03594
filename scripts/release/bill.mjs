/** The bill of materials of a release, as CycloneDX 1.5 (JSON). The same commit results in the same bytes. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';

const read = (...parts) => JSON.parse(readFileSync(path.join(...parts), 'utf8'));

/**
 * Lists our packages, each with the third-party packages in its bundle (`components`), and the packages that are installed
 * with them.
 */
export function bill(checkout, names) {
  const own = names.map((name) => {
    const folder = path.join(checkout, 'packages', name);
    return { folder, manifest: read(folder, 'package.json') };
  });
  const brought = new Map();
  for (const { folder, manifest } of own) bring(folder, manifest, brought);
  const components = own.map(({ folder, manifest }) => ({
    ...component(manifest),
    ...(hasParts(folder) && { components: read(folder, 'lib/third-party.json').map(component) }),
  }));
  for (const manifest of [...brought.values()].sort((a, b) => (a.name < b.name ? -1 : 1)))
    components.push(component(manifest));
  const main = own.at(-1).manifest;
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { ...component(main), 'bom-ref': `${purlOf(main)}#release` } },
    components: components.map((part) => ({ ...part, 'bom-ref': part.purl })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Collects the dependencies of `manifest` recursively. Those for other platforms are not installed, and are skipped. */
function bring(folder, { dependencies, optionalDependencies }, brought) {
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const found = find(folder, name);
    if (found === null || brought.has(name) || /^(@shardtool\/|shardtool$)/.test(name)) continue;
    brought.set(name, found.manifest);
    bring(found.folder, found.manifest, brought);
  }
}

/** Resolves a package like Node: in the nearest node_modules of a parent folder, following links. */
function find(from, name) {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const place = path.join(folder, 'node_modules', name);
    const file = path.join(place, 'package.json');
    if (existsSync(file)) return { folder: realpathSync(place), manifest: read(file) };
    if (folder === path.dirname(folder)) return null;
  }
}

function component({ name, version, license }) {
  const licence = /[ ()]/.test(license) ? { expression: license } : { license: { id: license } };
  return { type: 'library', name, version, licenses: [licence], purl: purlOf({ name, version }) };
}

function purlOf({ name, version }) {
  const at =
    name === 'libjpeg-turbo' ? 'pkg:github/libjpeg-turbo/libjpeg-turbo' : `pkg:npm/${name.replace('@', '%40')}`;
  return `${at}@${version}`;
}

function hasParts(folder) {
  return existsSync(path.join(folder, 'lib/third-party.json'));
}
