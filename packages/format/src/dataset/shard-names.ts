/** Recognises shards by name, before any file is opened. */
import { isImageExtension } from '../image/kinds.js';
import { entryOf, isShardName, type LayoutName, layoutNames, layoutOfName, stemOfShard } from '../layouts/registry.js';
import { saysSplit } from '../layouts/split-name.js';
import { MANIFEST_FILE } from './manifest.js';

/** Which of these names are shards, in which layout, and which other layouts have shards among them. */
export function shardsAmong(names: readonly string[], layout: LayoutName | undefined) {
  const ofLayout = (name: LayoutName) => {
    const entry = entryOf(name);
    const found = names.filter((file) => isShardName(entry, file));
    return entry.maybeSidecar === undefined ? found : withoutSidecars(found, name, names);
  };
  const layouts = layoutNames().filter((name) => ofLayout(name).length > 0);
  const [taken, ...others] = layout === undefined ? layouts : [layout, ...layouts.filter((name) => name !== layout)];
  return { taken, there: taken === undefined ? [] : ofLayout(taken), others };
}

/** The layout of a folder that is itself a shard, by the names of its files. */
export function innerLayoutAmong(names: readonly string[], layout: LayoutName | undefined): LayoutName | undefined {
  return layoutNames().find((name) => {
    const { innerFile } = entryOf(name);
    return (layout ?? name) === name && innerFile !== undefined && names.includes(innerFile);
  });
}

/** Folders of any name that are each one shard, as LSUN has them: `bedroom_train_lmdb/data.mdb`. */
export function foldersOfShards(names: readonly string[], layout: LayoutName | undefined): string[] {
  const folders = names.flatMap((name) => {
    const parts = name.split('/');
    return parts.length === 2 && innerLayoutAmong([parts[1]!], layout) !== undefined ? [parts[0]!] : [];
  });
  return [...new Set(folders)].sort();
}

/** Filters shards in folders below, without indexes of other shards. A shard that is a folder is recognized by its contents. */
export function withoutIndexes(shards: readonly string[], layout: LayoutName, names: readonly string[]): string[] {
  const folders = new Set(names.map((name) => name.slice(0, Math.max(0, name.lastIndexOf('/')))));
  return withoutSidecars(shards, layout, [...names, ...folders]);
}

/**
 * The folders that hold one dataset each, as `pack --splits`, MosaicML and LitData write them: with a manifest, or
 * named like a split and with shards. Empty if there are also images.
 */
export function splitFolders(names: readonly string[]): string[] {
  const deepLayouts = layoutNames().filter((name) => entryOf(name).isDeep);
  const hasShards = (layout: LayoutName, inIt: readonly string[]) =>
    inIt.some((name) => isShardName(entryOf(layout), name));
  const within = new Map<string, string[]>();
  for (const name of names) {
    const [folder, ...rest] = name.split('/');
    if (rest.length === 0) continue;
    const inIt = within.get(folder!);
    if (inIt === undefined) within.set(folder!, [rest.join('/')]);
    else inIt.push(rest.join('/'));
  }
  const isDataset = (folder: string, inIt: readonly string[]): boolean => {
    const here = [...new Set(inIt.map((name) => name.split('/', 1)[0]!))];
    const taken =
      shardsAmong(here, undefined).taken ??
      innerLayoutAmong(here, undefined) ??
      deepLayouts.find((name) => hasShards(name, inIt));
    if (taken !== undefined && entryOf(taken).isDeep) return false;
    return inIt.includes(MANIFEST_FILE) || (taken !== undefined && saysSplit(folder));
  };
  const datasets = [...within].filter(([folder, inIt]) => isDataset(folder, inIt)).map(([folder]) => folder);
  const others = names.filter((name) => !datasets.includes(name.slice(0, Math.max(0, name.indexOf('/')))));
  return others.some((name) => isImageExtension(name.slice(name.lastIndexOf('.') + 1))) ? [] : datasets.sort();
}

/**
 * The files that are shards. A file next to a shard of another layout with the same stem is its index or its metadata,
 * not a shard.
 */
function withoutSidecars(files: readonly string[], layout: LayoutName, names: readonly string[]): string[] {
  const stems = new Set<string>();
  for (const name of names) {
    const other = layoutOfName(name);
    const stem = other === null || other === layout ? null : stemOfShard(name);
    if (stem !== null && name.startsWith(stem)) stems.add(stem);
  }
  return files.filter((file) => !stems.has(file.slice(0, -entryOf(layout).extension.length)));
}
