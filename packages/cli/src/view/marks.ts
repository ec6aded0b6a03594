import { OptionError } from '@shardtool/base';
import { addOverlay } from '@shardtool/reader';
import { OverlayFolder, type SeenPlace } from './overlay-folder.js';
import type { Mark, MarkList, SavedMarks } from './protocol.js';

/** The column that says of a sample that something is wrong with it. */
const COLUMN = 'marked';

export class Marks {
  readonly #place: SeenPlace;
  #folder: Promise<OverlayFolder> | undefined;
  readonly #marks = new Map<number, { readonly key: string; readonly mark: Mark }>();
  #saved: SavedMarks | null = null;
  /** Overlays lie on each other: one save after the other. */
  #saving: Promise<unknown> = Promise.resolve();
  /** The overlay that was saved last, on which the next one lies. */
  #parent: string | null = null;

  /** They become overlays of this place, on the one that it is seen through. */
  constructor(place: SeenPlace) {
    this.#place = place;
  }

  /** Samples with marks that are in no overlay yet. */
  get count(): number {
    return this.#marks.size;
  }

  of(number: number): Mark | null {
    return this.#marks.get(number)?.mark ?? null;
  }

  /** Null takes the mark away. */
  set(number: number, key: string, mark: Mark | null): void {
    if (mark === null) this.#marks.delete(number);
    else this.#marks.set(number, { key, mark });
  }

  list(): MarkList {
    const marks = Array.from(this.#marks, ([number, { key, mark }]) => ({ number, key, mark }));
    return { marks: marks.sort((a, b) => a.number - b.number), saved: this.#saved };
  }

  /**
   * Makes an overlay of all marks, which are then gone from the list. The next one lies on it. Throws OptionError without
   * marks, OverlayError where the name is taken, FileError where it cannot be written; the marks stay then.
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
    // Samples that share a key share what is said of it: the mark that was made last counts.
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
    // A mark that was made while the overlay was written stays.
    for (const [number, entry] of taken) if (this.#marks.get(number) === entry) this.#marks.delete(number);
    this.#parent = folder.isBeside ? name : file;
    this.#saved = { overlay: this.#parent, file, excluded, relabelled, wrong: set };
    return this.#saved;
  }

  /** `marks-1`, or the first such name that no overlay has. */
  async freeName(): Promise<string> {
    return (await this.#openFolder()).freeName();
  }

  #openFolder(): Promise<OverlayFolder> {
    this.#folder ??= OverlayFolder.of(this.#place);
    return this.#folder;
  }
}
