import { isImageExtension, isImageField, packedName, type SampleName } from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import type { FileReader, SourceFiles } from '../source/source-files.js';

/** Files grouped to samples, which are numbered in the order of their images' paths. */
export interface Grouping {
  readonly samples: number;
  /** Sample s has the files `files[fileStart[s]]` to `files[fileStart[s + 1] - 1]`, its image first. */
  readonly fileStart: Uint32Array;
  readonly files: Uint32Array;
}

/** The files of one stem while they are gathered. */
interface Group {
  /** Path without the field. In sorted order its files are interrupted by those of longer stems only (`cat.1` in `cat`). */
  readonly stem: string;
  readonly members: { readonly file: number; readonly field: string }[];
  image: number;
}

const NONE = -1;

/**
 * Groups files to samples: an image and the files beside it with the same stem. A file with one of the fields in
 * `sidecarFields` is never the image; `wanted` says which images are packed. Throws {@link KeyCollisionError} for two files that end at one key.
 */
export function groupFiles(
  files: SourceFiles,
  sidecarFields: readonly string[],
  wanted: (file: number) => boolean,
): Grouping {
  const groups = new OpenGroups(files, sidecarFields, wanted);
  for (let file = 0; file < files.count; file++) groups.take(file);
  const grouping = groups.close();
  if (groups.sawDots) refuseEqualKeys(files, sidecarFields, grouping);
  return grouping;
}

/** Takes files in the order of their paths, which leaves only a few groups open at a time. */
class OpenGroups {
  /** Whether the dots of some stem became "_" in its key. */
  sawDots = false;
  readonly #files: FileReader;
  /** For files that were taken before. */
  readonly #earlier: FileReader;
  readonly #fields: readonly string[];
  readonly #isSidecar: ReadonlySet<string>;
  readonly #wanted: (file: number) => boolean;
  readonly #open: Group[] = [];
  readonly #chains: Chains;

  constructor(files: SourceFiles, sidecarFields: readonly string[], wanted: (file: number) => boolean) {
    this.#files = files.reader();
    this.#earlier = files.reader();
    this.#fields = sidecarFields;
    this.#isSidecar = new Set(sidecarFields);
    this.#wanted = wanted;
    this.#chains = new Chains(files.count);
  }

  take(file: number): void {
    const path = this.#files.path(file);
    while (this.#open.length > 0 && !isOfStem(path, this.#open.at(-1)!.stem)) this.#chains.add(this.#open.pop()!);
    const name = packedName(path, this.#fields);
    if (name === null) return;
    const image = !this.#isSidecar.has(name.field) && isImageExtension(name.field);
    if (image && !this.#wanted(file)) return;
    if (image && !isImageField(name.field)) {
      // An image of a kind that is refused gets no key, so it is in nobody's way.
      this.#chains.add({ stem: path, members: [{ file, field: name.field }], image: file });
    } else this.#join(path, file, name, image);
  }

  close(): Grouping {
    while (this.#open.length > 0) this.#chains.add(this.#open.pop()!);
    return this.#chains.inOrder();
  }

  #join(path: string, file: number, { key, field }: SampleName, image: boolean): void {
    const stem = path.slice(0, path.length - field.length - 1);
    let group = this.#open.find((candidate) => candidate.stem === stem);
    if (group === undefined) {
      group = { stem, members: [], image: NONE };
      this.#open.push(group);
    }
    const { members, image: other } = group;
    const twin = members.find((member) => member.field === field || (image && member.file === other));
    if (twin !== undefined) refuseTwins(key, this.#earlier.path(twin.file), path);
    members.push({ file, field });
    if (!image) return;
    group.image = file;
    if (stem !== key) this.sawDots = true;
  }
}

function isOfStem(path: string, stem: string): boolean {
  return path.startsWith(stem) && path[stem.length] === '.';
}

/** The files of each sample as a chain that begins at its image: four bytes a file. */
class Chains {
  readonly #next: Int32Array;
  readonly #isImage: Uint8Array;
  #samples = 0;
  #files = 0;

  constructor(files: number) {
    this.#next = new Int32Array(files).fill(NONE);
    this.#isImage = new Uint8Array(files);
  }

  /** A group without an image is no sample. */
  add(group: Group): void {
    if (group.image === NONE) return;
    let last = group.image;
    for (const { file } of group.members) {
      if (file === group.image) continue;
      this.#next[last] = file;
      last = file;
    }
    this.#isImage[group.image] = 1;
    this.#samples++;
    this.#files += group.members.length;
  }

  inOrder(): Grouping {
    const fileStart = new Uint32Array(this.#samples + 1);
    const files = new Uint32Array(this.#files);
    let sample = 0;
    let used = 0;
    for (let image = this.#isImage.indexOf(1); image !== -1; image = this.#isImage.indexOf(1, image + 1)) {
      for (let file = image; file !== NONE; file = this.#next[file]!) files[used++] = file;
      fileStart[++sample] = used;
    }
    return { samples: this.#samples, fileStart, files };
  }
}

/** Finds samples of different stems whose keys are equal, because dots in a stem become "_" in its key. */
function refuseEqualKeys(files: SourceFiles, sidecarFields: readonly string[], grouping: Grouping): void {
  const changedKeys = new Map<string, number>();
  const reader = files.reader();
  for (const changed of [true, false]) {
    for (let sample = 0; sample < grouping.samples; sample++) {
      const image = grouping.files[grouping.fileStart[sample]!]!;
      const path = reader.path(image);
      const { key, field } = packedName(path, sidecarFields)!;
      if (path.startsWith(key) === changed || !isImageField(field)) continue;
      const other = changedKeys.get(key);
      if (other !== undefined) refuseTwins(key, reader.path(other), path);
      if (changed) changedKeys.set(key, image);
    }
  }
}

function refuseTwins(key: string, first: string, second: string): never {
  throw new KeyCollisionError(
    { key, paths: [first, second] },
    `${first} and ${second} would both be "${key}": rename one, or name its ending with "fields" if it belongs to the other.`,
  );
}
