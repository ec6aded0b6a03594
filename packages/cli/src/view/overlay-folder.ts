/** Where overlays of marks are written: next to the shards or, if that is not possible, in a local folder. */
import { constants } from 'node:fs';
import { access, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder, writeAtomically } from '@shardtool/base';
import { OVERLAYS_FOLDER, OverlayError, sideFolder } from '@shardtool/format';
import { overlayHistory } from '@shardtool/reader';
import { joinLocation, localPathOf, readWhole, shownLocation, splitLocation } from '@shardtool/storage';

/** A dataset, and the overlay that it was opened with. */
export interface SeenPlace {
  readonly location: string;
  readonly overlay: string | undefined;
}

export class OverlayFolder {
  readonly #place: SeenPlace;
  /** The folder of the overlay that the dataset was opened with. */
  readonly #source: string;
  readonly #folder: string;
  /** True if the overlay is found by its name and needs no path. */
  readonly isBeside: boolean;

  private constructor(place: SeenPlace, source: string, folder: string, isBeside: boolean) {
    this.#place = place;
    this.#source = source;
    this.isBeside = isBeside;
    this.#folder = folder;
  }

  static async of(place: SeenPlace): Promise<OverlayFolder> {
    const { location, overlay } = place;
    const isOwn = overlay === undefined || !/[\\/]|\.jsonl$/.test(overlay);
    const source = isOwn ? joinLocation(location, OVERLAYS_FOLDER) : splitLocation(overlay).folder;
    const folder = localPathOf(location);
    const canLie = isOwn && folder !== null && (await isFolderToWrite(folder));
    const at = canLie ? folder : sideFolder(location);
    if (at === null) {
      const message = `There is no folder to keep the overlay in; set SHARDTOOL_SIDECARS to a folder that can be written.`;
      throw new OverlayError({ path: shownLocation(location) }, message);
    }
    return new OverlayFolder(place, source, path.join(at, OVERLAYS_FOLDER), canLie);
  }

  /** Returns `marks-1`, or the first such name that is free here and among the overlays below. */
  async freeName(): Promise<string> {
    const names = new Set(await readdir(this.#folder).catch(() => []));
    for (const name of await this.#below()) names.add(`${name}.jsonl`);
    for (let number = 1; ; number++) if (!names.has(`marks-${number}.jsonl`)) return `marks-${number}`;
  }

  fileOf(name: string): string {
    return path.join(this.#folder, `${name}.jsonl`);
  }

  /**
   * Creates the folder, and copies the overlays that the dataset was opened with into it, because a chain of overlays
   * has to be in one folder. Returns the overlay that the first overlay of marks builds on. Throws {@link OverlayError}
   * if another overlay in the folder has the same name.
   */
  async prepare(): Promise<string | undefined> {
    const { overlay } = this.#place;
    if (this.isBeside) return overlay;
    makeFolder(this.#folder);
    const below = await this.#below();
    for (const name of this.#source === this.#folder ? [] : below) {
      const bytes = await readWhole(joinLocation(this.#source, `${name}.jsonl`));
      const file = this.fileOf(name);
      const there = await readFile(file).catch(() => null);
      if (there !== null && !there.equals(bytes)) {
        const message = `${file} is not the overlay "${name}" of ${shownLocation(this.#place.location)}: move it away.`;
        throw new OverlayError({ path: file }, message);
      }
      if (there !== null) continue;
      await writeAtomically(file, bytes);
    }
    const [last] = below.slice(-1);
    return last === undefined ? undefined : this.fileOf(last);
  }

  /** Returns the names of the overlays that the dataset was opened with, the lowest first. */
  async #below(): Promise<string[]> {
    const { location, overlay } = this.#place;
    return overlay === undefined ? [] : (await overlayHistory(location, overlay)).map(({ name }) => name);
  }
}

async function isFolderToWrite(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.W_OK);
    return (await stat(folder)).isDirectory();
  } catch {
    return false;
  }
}
