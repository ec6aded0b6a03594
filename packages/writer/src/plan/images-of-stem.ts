import type { FileReader, SourceFiles } from '../source/source-files.js';
import { NONE } from './chains.js';
import type { ExtraField, Naming } from './naming.js';

/** Path without its field and without the dot before the field. */
export function stemOf(path: string, field: string): string {
  return path.slice(0, path.length - field.length - 1);
}

/** Finds the image that a file in another folder, or with another stem, belongs to. */
export class ImagesOfStem {
  readonly #files: FileReader;
  readonly #naming: Naming;
  /** Folders next to a paired folder, by the path in front of that folder. */
  readonly #siblings = new Map<string, readonly string[]>();

  constructor(files: SourceFiles, naming: Naming) {
    this.#files = files.reader();
    this.#naming = naming;
  }

  /** Returns the image and its folder next to the paired folder. `folder` is null if the image is somewhere else. */
  of({ above }: ExtraField, stem: string): { readonly image: number; readonly folder: string | null } | null {
    const here = this.#imageWith(above === null ? stem : above + stem);
    if (here !== NONE || above === null) return here === NONE ? null : { image: here, folder: null };
    for (const folder of this.#foldersIn(above)) {
      const image = this.#imageWith(`${above}${folder}/${stem}`);
      if (image !== NONE) return { image, folder };
    }
    return null;
  }

  /** Returns the image with this path, without its extension. */
  #imageWith(stem: string): number {
    const start = `${stem}.`;
    for (let file = this.#files.firstFrom(start); file < this.#files.count; file++) {
      const path = this.#files.path(file);
      if (!path.startsWith(start)) return NONE;
      const name = this.#naming.extraFieldOf(path) === null ? this.#naming.nameOf(path) : null;
      if (name === null || this.#naming.isSidecar(name.field) || !this.#naming.canBeImage(name.field)) continue;
      if (stemOf(path, name.field) === stem) return file;
    }
    return NONE;
  }

  /** Folders right below `above` that are not paired themselves, sorted. */
  #foldersIn(above: string): readonly string[] {
    const known = this.#siblings.get(above);
    if (known !== undefined) return known;
    const folders: string[] = [];
    let file = this.#files.firstFrom(above);
    while (file < this.#files.count) {
      const path = this.#files.path(file);
      if (!path.startsWith(above)) break;
      const slash = path.indexOf('/', above.length);
      if (slash === -1) {
        file++;
        continue;
      }
      const folder = path.slice(above.length, slash);
      if (!this.#naming.isPaired(folder)) folders.push(folder);
      // "0" is the character that follows "/".
      file = this.#files.firstFrom(`${above}${folder}0`);
    }
    this.#siblings.set(above, folders);
    return folders;
  }
}
