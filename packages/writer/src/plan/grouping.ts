import { countOf, OptionError, option, sentence } from '@shardtool/base';
import type { SampleName } from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import type { FileReader, SourceFiles } from '../source/source-files.js';
import { Chains, NONE } from './chains.js';
import { ImagesOfStem, stemOf } from './images-of-stem.js';
import type { Naming } from './naming.js';
import { OUTCOME } from './outcomes.js';

/**
 * Files grouped into samples. Samples are numbered in the order of their images' paths. If samples have no images, the
 * files of the field `primary` take their place, here and in all of planning.
 */
export interface Grouping {
  readonly samples: number;
  /** Sample s has the files `files[fileStart[s]]` to `files[fileStart[s + 1] - 1]`, its image first. */
  readonly fileStart: Uint32Array;
  readonly files: Uint32Array;
}

/** All files of a source, including those that are in no sample. */
export interface GroupedFiles {
  readonly grouping: Grouping;
  /** A number of {@link OUTCOME} for each file. */
  readonly outcomes: Uint8Array;
  /**
   * Files whose key and field another file already has: from the number of the skipped file to the number of the kept
   * one.
   */
  readonly collisions: ReadonlyMap<number, number>;
  /** Folders right below the source that hold the images of paired folders next to them. They are not classes. */
  readonly imageFolders: ReadonlySet<string>;
}

export interface GroupOptions {
  readonly naming: Naming;
  /** {@link OUTCOME}.packed for an image that is packed, otherwise the reason why it is not. */
  readonly imageOutcome: (file: number) => number;
  /** True for a file that is the labels of others, and so is in no sample. */
  readonly isLabels: (file: number) => boolean;
  /** How files with the same key are handled: stop with an error, or keep the first by path. */
  readonly onCollision: 'raise' | 'quarantine';
}

/** The files of one stem while they are collected. */
interface Group {
  /**
   * Path without the field. In sorted order, only files of longer stems can come between its files (`cat.1` in `cat`).
   */
  readonly stem: string;
  readonly members: { readonly file: number; readonly field: string }[];
  image: number;
  /** Why the image of this stem is not packed, if it is not. It then decides the outcome of the files next to it. */
  unpacked: number;
}

/**
 * Groups files into samples: an image and the files that belong to it, by stem or by the rules of `naming`. Throws
 * {@link KeyCollisionError} for two files with the same key, and {@link OptionError} for an extension or a folder of
 * the options that matches no file.
 */
export function groupFiles(files: SourceFiles, options: GroupOptions): GroupedFiles {
  const { naming } = options;
  const groups = new OpenGroups(files, options);
  for (let file = 0; file < files.count; file++) groups.take(file);
  groups.close();
  if (naming.rules.length > 0) refuseUnmet(files, naming, groups.met);
  const imageFolders = naming.hasExtraFields ? groups.joinExtraFields() : new Set<string>();
  const grouping = groups.chains.inOrder();
  const equal = groups.sawDots ? equalKeys(files, options, grouping) : new Map<number, number>();
  if (equal.size === 0) return { grouping, outcomes: groups.outcomes, collisions: groups.collisions, imageFolders };
  const collisions = new Map([...groups.collisions, ...equal]);
  for (const image of equal.keys()) groups.outcomes[image] = OUTCOME.collides;
  return { grouping: withoutImages(grouping, groups.outcomes), outcomes: groups.outcomes, collisions, imageFolders };
}

/** Takes files in the order of their paths, so that only a few groups are open at a time. */
class OpenGroups {
  /** True if dots in some stem became "_" in its key. */
  sawDots = false;
  /** Rules of the naming that matched at least one file. */
  readonly met = new Set<string>();
  readonly outcomes: Uint8Array;
  readonly collisions = new Map<number, number>();
  readonly chains: Chains;
  readonly #all: SourceFiles;
  readonly #files: FileReader;
  /** Reads the names of files that were taken earlier. */
  readonly #earlier: FileReader;
  readonly #options: GroupOptions;
  readonly #open: Group[] = [];

  constructor(files: SourceFiles, options: GroupOptions) {
    this.outcomes = new Uint8Array(files.count);
    this.chains = new Chains(files.count);
    this.#all = files;
    this.#files = files.reader();
    this.#earlier = files.reader();
    this.#options = options;
  }

  take(file: number): void {
    const { naming, imageOutcome, isLabels } = this.#options;
    if (isLabels(file)) {
      this.outcomes[file] = OUTCOME.labels;
      return;
    }
    const path = this.#files.path(file);
    while (this.#open.length > 0 && !isOfStem(path, this.#open.at(-1)!.stem)) this.#end(this.#open.pop()!);
    const extraField = naming.extraFieldOf(path);
    if (extraField !== null) {
      // Its image may come much later: see joinExtraFields.
      this.met.add(extraField.rule);
      return;
    }
    const name = naming.nameOf(path);
    if (name === null) {
      this.outcomes[file] = OUTCOME.noExtension;
      return;
    }
    const isSidecar = naming.isSidecar(name.field);
    if (isSidecar) this.met.add(name.field);
    const isImage = naming.makesSample(name.field);
    const outcomes = isImage ? imageOutcome(file) : OUTCOME.packed;
    if (outcomes !== OUTCOME.packed) {
      this.outcomes[file] = outcomes;
      this.#groupOf(stemOf(path, name.field)).unpacked = outcomes === OUTCOME.inDataset ? outcomes : OUTCOME.ofUnpacked;
    } else if (isImage && !naming.canBeImage(name.field)) {
      // An image of a rejected kind gets no key, so it cannot collide with another file.
      this.chains.add(file, [file]);
    } else this.#join(path, file, name, isImage);
  }

  close(): void {
    while (this.#open.length > 0) this.#end(this.#open.pop()!);
  }

  /** Joins files to images with other stems. Returns the folders of these images. */
  joinExtraFields(): Set<string> {
    const { naming } = this.#options;
    const images = new ImagesOfStem(this.#all, naming);
    const folders = new Set<string>();
    for (let file = 0; file < this.#all.count; file++) {
      const extraField = naming.extraFieldOf(this.#files.path(file));
      if (extraField === null || this.outcomes[file] === OUTCOME.labels) continue;
      const found = extraField.stem === null ? null : images.of(extraField, extraField.stem);
      if (found === null) {
        this.outcomes[file] = extraField.stem === null ? OUTCOME.otherExtension : OUTCOME.unpaired;
        continue;
      }
      if (found.folder !== null && extraField.above === '') folders.add(found.folder);
      if (!this.chains.isImage(found.image)) {
        this.outcomes[file] = this.outcomes[found.image] === OUTCOME.inDataset ? OUTCOME.inDataset : OUTCOME.ofUnpacked;
        continue;
      }
      const twin = this.chains
        .of(found.image)
        .find((member) => naming.fieldOf(this.#earlier.path(member)) === extraField.field);
      if (twin === undefined) this.chains.append(found.image, file);
      else this.#collide(naming.keyOf(this.#earlier.path(found.image)), twin, file);
    }
    return folders;
  }

  #join(path: string, file: number, { key, field }: SampleName, isImage: boolean): void {
    const stem = stemOf(path, field);
    const group = this.#groupOf(stem);
    const { members, image: other } = group;
    const twin = members.find((member) => member.field === field || (isImage && member.file === other));
    if (twin !== undefined) {
      this.#collide(key, twin.file, file);
      return;
    }
    members.push({ file, field });
    if (!isImage) return;
    group.image = file;
    if (stem !== key) this.sawDots = true;
  }

  #collide(key: string, first: number, second: number): void {
    if (this.#options.onCollision === 'raise')
      throw collision(key, this.#earlier.path(first), this.#earlier.path(second));
    this.outcomes[second] = OUTCOME.collides;
    this.collisions.set(second, first);
  }

  #groupOf(stem: string): Group {
    let group = this.#open.find((candidate) => candidate.stem === stem);
    if (group === undefined) {
      group = { stem, members: [], image: NONE, unpacked: OUTCOME.packed };
      this.#open.push(group);
    }
    return group;
  }

  /** A group without an image is not a sample. */
  #end({ members, image, unpacked }: Group): void {
    if (image !== NONE) {
      this.chains.add(
        image,
        members.map(({ file }) => file),
      );
      return;
    }
    for (const { file } of members) this.outcomes[file] = unpacked === OUTCOME.packed ? OUTCOME.noImage : unpacked;
  }
}

function isOfStem(path: string, stem: string): boolean {
  return path.startsWith(stem) && path[stem.length] === '.';
}

/**
 * Finds samples of different stems with equal keys, because dots in a stem become "_" in its key. Returns the image to
 * skip and the one that stays.
 */
function equalKeys(files: SourceFiles, { naming, onCollision }: GroupOptions, grouping: Grouping): Map<number, number> {
  const changedKeys = new Map<string, number>();
  const leftOut = new Map<number, number>();
  const reader = files.reader();
  for (const changed of [true, false]) {
    for (let sample = 0; sample < grouping.samples; sample++) {
      const image = grouping.files[grouping.fileStart[sample]!]!;
      const path = reader.path(image);
      const { key, field } = naming.nameOf(path)!;
      if (path.startsWith(key) === changed || !naming.canBeImage(field)) continue;
      const other = changedKeys.get(key);
      if (other !== undefined) {
        if (onCollision === 'raise') throw collision(key, reader.path(other), path);
        leftOut.set(image, other);
      } else if (changed) changedKeys.set(key, image);
    }
  }
  return leftOut;
}

/**
 * Returns the samples whose images are packed, and marks the other files of the remaining samples as skipped with their
 * image.
 */
function withoutImages({ samples, fileStart, files }: Grouping, outcomes: Uint8Array): Grouping {
  const starts = [0];
  const kept: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    const members = files.subarray(fileStart[sample]!, fileStart[sample + 1]!);
    if (outcomes[members[0]!] === OUTCOME.packed) {
      kept.push(...members);
      starts.push(kept.length);
    } else for (const file of members.subarray(1)) outcomes[file] = OUTCOME.ofUnpacked;
  }
  return { samples: starts.length - 1, fileStart: Uint32Array.from(starts), files: Uint32Array.from(kept) };
}

/**
 * Throws if an extension or a folder of the options matches no file. Otherwise masks would be packed as images, or be
 * missing.
 */
function refuseUnmet(files: SourceFiles, naming: Naming, met: ReadonlySet<string>): void {
  const rule = files.count === 0 ? undefined : naming.rules.find((candidate) => !met.has(candidate));
  if (rule === undefined) return;
  if (rule.includes('=')) {
    throw new OptionError(
      {},
      sentence`The option ${option('pair')} is ${rule}, but the source has no folder called ${rule.split('=')[0]}.`,
    );
  }
  const reader = files.reader();
  let others = 0;
  let example = '';
  const ending = rule.replace(/^[._-]+/, '');
  for (let file = 0; file < files.count; file++) {
    const path = reader.path(file);
    const at = path.length - ending.length;
    if (!path.toLowerCase().endsWith(ending) || !/[._-]/.test(path[at - 1] ?? '')) continue;
    others++;
    example = path[at - 1] === '.' ? ending : `${path[at - 1]}${ending}`;
  }
  const remedy =
    others === 0
      ? 'remove it, or give the extension that the files have'
      : `${countOf(others, 'file ends', 'files end')} in "${example}": use that`;
  throw new OptionError(
    {},
    sentence`The option ${option('fields')} is ${rule}, but no file of the source has this extension; ${remedy}.`,
  );
}

function collision(key: string, first: string, second: string): KeyCollisionError {
  return new KeyCollisionError(
    { key, paths: [first, second] },
    sentence`${first} and ${second} would both have the key "${key}": rename one of them. If one belongs to the other, add its extension to ${option('fields')}. To skip the second and list it in quarantine.jsonl, set ${option('onBad', 'quarantine')}.`,
  );
}
