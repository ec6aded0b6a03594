import { isImageField } from '@shardtool/format';
import type { FileReader, SourceFiles } from '../source/source-files.js';
import { NONE } from './chains.js';
import type { ExtraField, Naming } from './naming.js';

/** The path without its field, and without the dot before that. */
export function stemOf(path: string, field: string): string {
  return path.slice(0, path.length - field.length - 1);
}

/** Finds the image that a file belongs to which lies elsewhere. */
export class ImagesOfStem {
  readonly #files: FileReader;
  readonly #naming: Naming;
  /** By what lies in front of a paired folder: the folders beside it. */
  readonly #beside = new Map<string, readonly string[]>();

  constructor(files: SourceFiles, naming: Naming) {
    this.#files = files.reader();
    this.#naming = naming;
  }

  /** `folder` is where the image lies, beside the paired folder; null where that is another place. */
  of({ above }: ExtraField, stem: string): { readonly image: number; readonly folder: string | null } | null {
    const here = this.#imageWith(above === null ? stem : above + stem);
    if (here !== NONE || above === null) return here === NONE ? null : { image: here, folder: null };
    for (const folder of this.#foldersIn(above)) {
      const image = this.#imageWith(`${above}${folder}/${stem}`);
      if (image !== NONE) return { image, folder };
    }
    return null;
  }

  /** The image with this path in front of its ending. */
  #imageWith(stem: string): number {
    const start = `${stem}.`;
    for (let file = this.#files.firstFrom(start); file < this.#files.count; file++) {
      const path = this.#files.path(file);
      if (!path.startsWith(start)) return NONE;
      const name = this.#naming.extraFieldOf(path) === null ? this.#naming.nameOf(path) : null;
      if (name === null || this.#naming.isSidecar(name.field) || !isImageField(name.field)) continue;
      if (stemOf(path, name.field) === stem) return file;
    }
    return NONE;
  }

  /** Folders right below `above` that are not paired themselves, sorted. */
  #foldersIn(above: string): readonly string[] {
    const known = this.#beside.get(above);
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
      // "0" comes behind "/".
      file = this.#files.firstFrom(`${above}${folder}0`);
    }
    this.#beside.set(above, folders);
    return folders;
  }
}
