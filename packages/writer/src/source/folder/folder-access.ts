import { type Dirent, readdir, readdirSync, realpath, realpathSync, type Stats, stat, statSync } from 'node:fs';
import { join } from 'node:path';
import type { InFlight } from '../ahead/in-flight.js';

/** Queries of a walk to the file system. */
export interface FolderAccess {
  /** Returns the entries of a folder. Throws the system's error. */
  entries(path: string): readonly Dirent[];
  /** Returns the target of a link; undefined if it is dangling. */
  follow(path: string): Stats | undefined;
  realPath(path: string): string;
}

/** Queries the file system synchronously. */
export const ATONCE: FolderAccess = {
  entries: (path) => readdirSync(path, { withFileTypes: true }),
  follow: (path) => statSync(path, { throwIfNoEntry: false }),
  realPath: (path) => realpathSync.native(path),
};

/** Limit of entries that are kept for folders that the walk has not reached yet. */
const HELD_ENTRIES = 200_000;

/** A folder that was listed ahead. */
interface Listing {
  readonly entries: readonly Dirent[] | Error;
  readonly links: ReadonlyMap<string, Stats | undefined>;
  /** Real paths of the folder itself and of the folders that its links point to. */
  readonly real: ReadonlyMap<string, string>;
}

/**
 * Lists folders concurrently, before a walk reaches them. The walk announces them in its order ({@link expect}), and
 * waits for each ({@link ready}) before it asks for its entries.
 */
export class FoldersAhead implements FolderAccess {
  readonly #flight: InFlight;
  /** The next folder is the last element. */
  readonly #expected: string[] = [];
  readonly #listings = new Map<string, Promise<Listing>>();
  #held = 0;
  /** The current folder of the walk. */
  #here: Listing = { entries: [], links: new Map(), real: new Map() };

  constructor(flight: InFlight) {
    this.#flight = flight;
  }

  /** Announces the folders below the current one, in the order in which the walk will reach them. */
  expect(paths: readonly string[]): void {
    for (let i = paths.length - 1; i >= 0; i--) this.#expected.push(paths[i]!);
    this.#begin();
  }

  /** Throws `SourceTimeoutError`. */
  async ready(path: string): Promise<void> {
    if (!this.#listings.has(path)) {
      const place = this.#expected.lastIndexOf(path);
      if (place !== -1) this.#expected.splice(place, 1);
      this.#list(path);
    }
    this.#here = await this.#listings.get(path)!;
    this.#listings.delete(path);
    this.#held -= this.#here.entries instanceof Error ? 0 : this.#here.entries.length;
    this.#begin();
  }

  entries(_path: string): readonly Dirent[] {
    const { entries } = this.#here;
    if (entries instanceof Error) throw entries;
    return entries;
  }

  follow(path: string): Stats | undefined {
    return this.#here.links.has(path) ? this.#here.links.get(path) : ATONCE.follow(path);
  }

  realPath(path: string): string {
    return this.#here.real.get(path) ?? ATONCE.realPath(path);
  }

  #begin(): void {
    while (this.#expected.length > 0 && this.#flight.hasRoom && this.#held < HELD_ENTRIES) {
      this.#list(this.#expected.pop()!);
    }
    this.#flight.starved();
  }

  #list(path: string): void {
    const listing = this.#read(path);
    // A failure is reported to the caller that waits for this folder.
    listing.then(
      () => this.#begin(),
      () => undefined,
    );
    this.#listings.set(path, listing);
  }

  async #read(path: string): Promise<Listing> {
    const links = new Map<string, Stats | undefined>();
    const real = new Map<string, string>();
    const flight = this.#flight;
    let entries: readonly Dirent[];
    try {
      const own = await flight.run<string>(path, (done) => realpath.native(path, done));
      real.set(path, own);
      entries = await flight.run<Dirent[]>(path, (done) => readdir(path, { withFileTypes: true }, done));
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      return { entries: error, links, real };
    }
    this.#held += entries.length;
    const follow = async (link: string): Promise<void> => {
      const found = await flight.run<Stats | undefined>(link, (done) => stat(link, (_, stats) => done(null, stats)));
      links.set(link, found);
      if (!found?.isDirectory()) return;
      const target = await flight.run<string | undefined>(link, (done) => {
        realpath.native(link, (_, path) => done(null, path));
      });
      if (target !== undefined) real.set(link, target);
    };
    await Promise.all(entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => follow(join(path, name))));
    return { entries, links, real };
  }
}
