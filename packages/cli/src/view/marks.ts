import { OptionError } from '@shardtool/base';
import { addOverlay } from '@shardtool/reader';
import { OverlayFolder, type SeenPlace } from './overlay-folder.js';
import type { Mark, MarkList, SavedMarks } from './protocol.js';

/** The column of samples that were marked as wrong. */
const COLUMN = 'marked';

export class Marks {
  readonly #place: SeenPlace;
  #folder: Promise<OverlayFolder> | undefined;
  readonly #marks = new Map<number, { readonly key: string; readonly mark: Mark }>();
  #saved: SavedMarks | null = null;
  /** Overlays build on each other, so saves run one after the other. */
  #saving: Promise<unknown> = Promise.resolve();
  /** The overlay that was saved last. The next one builds on it. */
  #parent: string | null = null;

  /** Marks become overlays of this dataset, on top of the overlay that it was opened with. */
  constructor(place: SeenPlace) {
    this.#place = place;
  }

  /** Number of samples with marks that have not been saved. */
  get count(): number {
    return this.#marks.size;
  }

  of(index: number): Mark | null {
    return this.#marks.get(index)?.mark ?? null;
  }

  /** Sets the mark of a sample. If `mark` is null, removes it. */
  set(index: number, key: string, mark: Mark | null): void {
    if (mark === null) this.#marks.delete(index);
    else this.#marks.set(index, { key, mark });
  }

  list(): MarkList {
    const marks = Array.from(this.#marks, ([index, { key, mark }]) => ({ index, key, mark }));
    return { marks: marks.sort((a, b) => a.index - b.index), saved: this.#saved };
  }

  /**
   * Writes an overlay of all marks and removes them from the list. The next overlay builds on it. Throws OptionError if
   * there are no marks, OverlayError if the name is taken, or FileError if the overlay cannot be written. After an
   * error the marks are kept.
   */
  save(name: string): Promise<SavedMarks> {
    const saving = this.#saving.then(() => this.#save(name));
    this.#saving = saving.catch(() => undefined);
    return saving;
  }

  async #save(name: string): Promise<SavedMarks> {
    if (this.#marks.size === 0) throw new OptionError({}, 'There are no marks to save: mark samples first.');
    const taken = [...this.#marks];
    const keysOf = (kind: Mark['kind']) => taken.flatMap(([, { key, mark }]) => (mark.kind === kind ? [key] : []));
    const labelled = taken.flatMap(([, { key, mark }]) => (mark.kind === 'exclude' ? [] : [{ key, mark }]));
    // An overlay works by key. If several samples share a key, the mark that was made last counts.
    const byKey = new Map(labelled.map((one) => [one.key, one.mark]));
    const marks = [...byKey.values()];
    const hasWrong = marks.some(({ kind }) => kind === 'wrong');
    const folder = await this.#openFolder();
    const { file, excluded, relabelled, set } = await addOverlay(this.#place.location, {
      name,
      file: folder.fileOf(name),
      parent: this.#parent ?? (await folder.prepare()),
      note: 'marked in shardtool view',
      excludeKeys: new Set(keysOf('exclude')),
      ...(byKey.size > 0 && {
        labels: {
          by: 'key' as const,
          id: [...byKey.keys()],
          cls: marks.map((mark) => (mark.kind === 'class' ? mark.name : '')),
          columns: new Map(hasWrong ? [[COLUMN, marks.map(({ kind }) => (kind === 'wrong' ? kind : null))]] : []),
        },
      }),
    });
    // Keep marks that were changed while the overlay was written.
    for (const [index, entry] of taken) if (this.#marks.get(index) === entry) this.#marks.delete(index);
    this.#parent = folder.isBeside ? name : file;
    this.#saved = { overlay: this.#parent, file, excluded, relabelled, wrong: set };
    return this.#saved;
  }

  /** Returns `marks-1`, or the first such name that is free. */
  async freeName(): Promise<string> {
    return (await this.#openFolder()).freeName();
  }

  #openFolder(): Promise<OverlayFolder> {
    this.#folder ??= OverlayFolder.of(this.#place);
    return this.#folder;
  }
}
