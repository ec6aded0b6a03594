import { isImageExtension, isImageField, packedName } from '@shardtool/format';
import { KeyCollisionError } from './errors.js';
import { type FileTable, pathAt } from './file-table.js';

/** Files grouped to samples, in the order of the images' paths. */
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
 * `sidecarFields` is never the image; `wanted` says which images are packed. The table is sorted by path, so only a few
 * groups are open at a time. Throws {@link KeyCollisionError} for two files that end at one key.
 */
export function groupFiles(
  files: FileTable,
  sidecarFields: readonly string[],
  wanted: (file: number) => boolean,
): Grouping {
  const isSidecar = new Set(sidecarFields);
  const chains = new Chains(files.count);
  const open: Group[] = [];
  let dotted = false;
  for (let file = 0; file < files.count; file++) {
    const path = pathAt(files, file);
    while (open.length > 0 && !path.startsWith(`${open.at(-1)!.stem}.`)) chains.add(open.pop()!);
    const name = packedName(path, sidecarFields);
    if (name === null) continue;
    const image = !isSidecar.has(name.field) && isImageExtension(name.field);
    if (image && !wanted(file)) continue;
    if (image && !isImageField(name.field)) {
      // An image of a kind that is refused gets no key, so it is in nobody's way.
      chains.add({ stem: path, members: [{ file, field: name.field }], image: file });
      continue;
    }
    const stem = path.slice(0, path.length - name.field.length - 1);
    let group = open.find((candidate) => candidate.stem === stem);
    if (group === undefined) {
      group = { stem, members: [], image: NONE };
      open.push(group);
    }
    const twin = group.members.find((member) => member.field === name.field || (image && member.file === group.image));
    if (twin !== undefined) refuseTwins(name.key, pathAt(files, twin.file), path);
    group.members.push({ file, field: name.field });
    if (image) group.image = file;
    if (image && stem !== name.key) dotted = true;
  }
  while (open.length > 0) chains.add(open.pop()!);
  const grouping = chains.inOrder();
  if (dotted) refuseEqualKeys(files, sidecarFields, grouping);
  return grouping;
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
function refuseEqualKeys(files: FileTable, sidecarFields: readonly string[], grouping: Grouping): void {
  const changedKeys = new Map<string, number>();
  for (const changed of [true, false]) {
    for (let sample = 0; sample < grouping.samples; sample++) {
      const image = grouping.files[grouping.fileStart[sample]!]!;
      const path = pathAt(files, image);
      const { key, field } = packedName(path, sidecarFields)!;
      if (path.startsWith(key) === changed || !isImageField(field)) continue;
      const other = changedKeys.get(key);
      if (other !== undefined) refuseTwins(key, pathAt(files, other), path);
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
