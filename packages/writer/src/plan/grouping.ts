import { countOf, OptionError } from '@shardtool/base';
import { isImageExtension, isImageField } from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import type { FileReader, SourceFiles } from '../source/source-files.js';
import { Chains, NONE } from './chains.js';
import { ImagesOfStem, stemOf } from './images-of-stem.js';
import type { Naming } from './naming.js';
import { OUTCOME } from './outcomes.js';

/** Files grouped to samples, which are numbered in the order of their images' paths. */
export interface Grouping {
  readonly samples: number;
  /** Sample s has the files `files[fileStart[s]]` to `files[fileStart[s + 1] - 1]`, its image first. */
  readonly fileStart: Uint32Array;
  readonly files: Uint32Array;
}

/** All files of a source, in samples or not. */
export interface GroupedFiles {
  readonly grouping: Grouping;
  /** Of each file: a number of {@link OUTCOME}. */
  readonly outcomes: Uint8Array;
  /** Files that would end at the key and field of another one, which stands in their place; by their numbers. */
  readonly collisions: ReadonlyMap<number, number>;
  /** Folders right below the source that hold the images of paired folders beside them: they are no classes. */
  readonly imageFolders: ReadonlySet<string>;
}

export interface GroupOptions {
  readonly naming: Naming;
  /** {@link OUTCOME}.packed for an image that is packed, else why not. */
  readonly imageOutcome: (file: number) => number;
  /** Whether a file says what the others show, and so is in no sample. */
  readonly isLabels: (file: number) => boolean;
  /** Files at one key: an error, or the first by its path stays. */
  readonly onCollision: 'stop' | 'quarantine';
}

/** The files of one stem while they are gathered. */
interface Group {
  /** Path without the field. In sorted order its files are interrupted by those of longer stems only (`cat.1` in `cat`). */
  readonly stem: string;
  readonly members: { readonly file: number; readonly field: string }[];
  image: number;
  /** Why an image of this stem is not packed, where that is so; then what becomes of the files beside it. */
  unpacked: number;
}

/**
 * Groups files to samples: an image and the files that belong to it, by their stem or as `naming` says. Throws
 * {@link KeyCollisionError} for two files that end at one key, {@link OptionError} for an ending or a folder that no file has.
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

/** Takes files in the order of their paths, which leaves only a few groups open at a time. */
class OpenGroups {
  /** Whether the dots of some stem became "_" in its key. */
  sawDots = false;
  /** Of the rules of the naming, those that some file fits. */
  readonly met = new Set<string>();
  readonly outcomes: Uint8Array;
  readonly collisions = new Map<number, number>();
  readonly chains: Chains;
  readonly #all: SourceFiles;
  readonly #files: FileReader;
  /** For files that were taken before. */
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
    const isImage = !isSidecar && isImageExtension(name.field);
    const outcomes = isImage ? imageOutcome(file) : OUTCOME.packed;
    if (outcomes !== OUTCOME.packed) {
      this.outcomes[file] = outcomes;
      this.#groupOf(stemOf(path, name.field)).unpacked = outcomes === OUTCOME.inDataset ? outcomes : OUTCOME.ofUnpacked;
    } else if (isImage && !isImageField(name.field)) {
      // An image of a kind that is refused gets no key, so it is in nobody's way.
      this.chains.add(file, [file]);
    } else this.#join(path, file, name.field, isImage);
  }

  close(): void {
    while (this.#open.length > 0) this.#end(this.#open.pop()!);
  }

  /** Joins the files to their images that belong to those of other stems. Returns the folders of such images. */
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

  #join(path: string, file: number, field: string, isImage: boolean): void {
    const stem = stemOf(path, field);
    const group = this.#groupOf(stem);
    const { members, image: other } = group;
    const twin = members.find((member) => member.field === field || (isImage && member.file === other));
    const { key } = this.#options.naming.nameOf(path)!;
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
    if (this.#options.onCollision === 'stop')
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

  /** A group without an image is no sample. */
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
 * Samples of different stems whose keys are equal, because dots in a stem become "_" in its key: the image that is to be left
 * out, and the one that stays.
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
      if (path.startsWith(key) === changed || !isImageField(field)) continue;
      const other = changedKeys.get(key);
      if (other !== undefined) {
        if (onCollision === 'stop') throw collision(key, reader.path(other), path);
        leftOut.set(image, other);
      } else if (changed) changedKeys.set(key, image);
    }
  }
  return leftOut;
}

/** The samples whose images are not marked; the files of the others are marked as theirs. */
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

/** Throws where an ending or a folder that was named is that of no file: masks would be taken for images, or go missing. */
function refuseUnmet(files: SourceFiles, naming: Naming, met: ReadonlySet<string>): void {
  const rule = files.count === 0 ? undefined : naming.rules.find((candidate) => !met.has(candidate));
  if (rule === undefined) return;
  if (rule.includes('=')) {
    throw new OptionError(
      {},
      `The option "pair" is ${rule}, and no folder of the source is called ${rule.split('=')[0]}.`,
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
      ? 'leave it out, or name the ending that they have'
      : `${countOf(others, 'file ends', 'files end')} in "${example}": name that`;
  throw new OptionError({}, `The option "fields" is ${rule}, and no file of the source ends so; ${remedy}.`);
}

function collision(key: string, first: string, second: string): KeyCollisionError {
  return new KeyCollisionError(
    { key, paths: [first, second] },
    `${first} and ${second} would both be "${key}": rename one, or name its ending with "fields" (--fields) if it belongs to the other, ` +
      'or have the second left out and listed in quarantine.jsonl: --on-bad quarantine.',
  );
}
