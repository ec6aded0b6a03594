import { readdir, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { DuplicateKeyError, FileError, reasonOf, sortByCodePoint } from '@shardtool/base';
import { isImageExtension, isImageField } from '../../image/kinds.js';
import { packedName } from '../../sample/sample-name.js';

/** The samples of a folder tree in the order of their images' paths, grouped as by `pack`. */
export interface ListedSamples {
  /** Paths relative to the folder, with "/" between folders: sample s has those from `first[s]` to `first[s + 1] - 1`, the image first. */
  readonly paths: readonly string[];
  readonly first: readonly number[];
  readonly keys: readonly string[];
  readonly fields: readonly string[];
}

/**
 * Lists the images below a folder, and the files next to them with the same stem. Skips names that begin with a dot,
 * and follows links, each folder once. An image of an unsupported kind is a sample too, so that it is reported as a bad
 * one. Throws {@link DuplicateKeyError} for two images of one name, and {@link FileError}.
 */
export async function listSamples(root: string): Promise<ListedSamples> {
  const found = { paths: [] as string[], first: [0], keys: [] as string[], fields: [] as string[] };
  const seen = new Set<string>([await realpath(root)]);
  const open: OpenFolder[] = [await openFolder(root, '', seen)];
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    const name = top.names[top.next++];
    if (name === undefined) open.pop();
    else if (name.endsWith('/')) open.push(await openFolder(root, top.folder + name, seen));
    else {
      const members = top.samples.get(name)!;
      for (const { file, field } of members) {
        found.paths.push(top.folder + file);
        found.fields.push(field);
      }
      found.first.push(found.paths.length);
      found.keys.push(members[0]!.key);
    }
  }
  return found;
}

/** A folder that is being walked. */
interface OpenFolder {
  /** Its path below the root, with a "/" at its end; '' for the root itself. */
  readonly folder: string;
  /** The names of its images and, with "/" at the end, of its folders. */
  readonly names: readonly string[];
  /** The files of each sample, by the name of its image. The image is the first of them. */
  readonly samples: ReadonlyMap<string, readonly Member[]>;
  next: number;
}

async function openFolder(root: string, folder: string, seen: Set<string>): Promise<OpenFolder> {
  const names = await namesIn(root, folder, seen);
  const samples = samplesOf(folder, names);
  return { folder, names: names.filter((name) => name.endsWith('/') || samples.has(name)), samples, next: 0 };
}

interface Member {
  readonly file: string;
  readonly key: string;
  readonly field: string;
}

function samplesOf(folder: string, names: readonly string[]): ReadonlyMap<string, readonly Member[]> {
  const byKey = new Map<string, Member[]>();
  for (const file of names) {
    const name = file.endsWith('/') ? null : packedName(folder + file);
    if (name === null) continue;
    const members = byKey.get(name.key);
    const member = { file, key: name.key, field: name.field };
    if (members === undefined) byKey.set(name.key, [member]);
    else members.push(member);
  }
  const groups = new Map<string, Member[]>();
  for (const [key, members] of byKey) {
    const images = members.filter(({ field }) => isImageExtension(field));
    if (images.length === 0) continue;
    const fields = new Set(members.map(({ field }) => field));
    if (images.length > 1 || fields.size < members.length) throw twice(key, folder, members);
    const image = images[0]!;
    const others = members.filter((member) => member !== image).sort((a, b) => (a.field < b.field ? -1 : 1));
    groups.set(image.file, [image, ...others]);
  }
  return groups;
}

function twice(key: string, folder: string, [one, other]: readonly Member[]): DuplicateKeyError {
  const message = `${folder}${one!.file} and ${folder}${other!.file} would both be the sample "${key}": rename one of them.`;
  return new DuplicateKeyError({ key }, message);
}

/** Sorted by code point. Folders have "/" at the end, so that the paths below them sort correctly. */
async function namesIn(root: string, folder: string, seen: Set<string>): Promise<string[]> {
  const place = path.join(root, folder);
  const entries = await readdir(place, { withFileTypes: true }).catch((cause: Error) => {
    throw new FileError({ path: place }, `The folder ${place} cannot be read: ${reasonOf(cause)}.`, { cause });
  });
  const names: string[] = [];
  for (const entry of entries) {
    const { name } = entry;
    if (name.startsWith('.')) continue;
    const target = entry.isSymbolicLink() ? await stat(path.join(place, name)).catch(() => null) : entry;
    if (target === null) names.push(await leadsNowhere(place, name));
    else if (target.isFile()) names.push(name);
    else if (target.isDirectory()) {
      const real = await realpath(path.join(place, name));
      if (seen.has(real)) continue;
      seen.add(real);
      names.push(`${name}/`);
    }
  }
  return sortByCodePoint(names);
}

/**
 * How to treat a broken link: as a file if its name has an extension; reading that file then fails. A name without an
 * extension may be a class on a disk that is not mounted: throws {@link FileError}.
 */
async function leadsNowhere(folder: string, name: string): Promise<string> {
  if (name.includes('.')) return name;
  const link = path.join(folder, name);
  const message = `The link ${link} leads to ${await readlink(link)}, which does not exist; mount its target, or remove the link.`;
  throw new FileError({ path: link }, message);
}

/**
 * Whether a folder, or one of the first folders below it, contains an image. Names for which `isLeftOut` returns true
 * are ignored in the folder itself.
 */
export async function holdsImages(root: string, isLeftOut?: (name: string) => boolean): Promise<boolean> {
  const open = [root];
  for (let looked = 0; looked < MOST_FOLDERS && open.length > 0; looked++) {
    const folder = open.shift()!;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (folder === root && isLeftOut?.(entry.name)) continue;
      const name = packedName(entry.name);
      if (name !== null && isImageField(name.field) && !entry.isDirectory()) return true;
      if (entry.isDirectory() && !entry.name.startsWith('.')) open.push(path.join(folder, entry.name));
    }
  }
  return false;
}

/** The search ends after this many folders without an image. */
const MOST_FOLDERS = 100;
