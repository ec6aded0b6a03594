import { type Dirent, readdir, readdirSync, realpath, realpathSync, type Stats, stat, statSync } from 'node:fs';
import { join } from 'node:path';
import type { InFlight } from '../ahead/in-flight.js';

/** What a walk asks the file system. */
export interface FolderAccess {
  /** The entries of a folder. Throws the system's error. */
  entries(path: string): readonly Dirent[];
  /** What a link leads to; undefined where it leads nowhere. */
  follow(path: string): Stats | undefined;
  realPath(path: string): string;
}

/** Asks when it is asked. */
export const ATONCE: FolderAccess = {
  entries: (path) => readdirSync(path, { withFileTypes: true }),
  follow: (path) => statSync(path, { throwIfNoEntry: false }),
  realPath: (path) => realpathSync.native(path),
};

/** So many entries of folders that the walk has not come to are held. */
const HELD_ENTRIES = 200_000;

/** A folder that was listed ahead. */
interface Listing {
  readonly entries: readonly Dirent[] | Error;
  readonly links: ReadonlyMap<string, Stats | undefined>;
  /** Where its links to folders lead, and where it lies itself. */
  readonly real: ReadonlyMap<string, string>;
}

/**
 * Lists the folders that a walk is going to come to, many at a time. The walk says which those are ({@link expect}), in its
 * order, and waits for each ({@link ready}) before it asks.
 */
export class FoldersAhead implements FolderAccess {
  readonly #flight: InFlight;
  /** The next is the last. */
  readonly #expected: string[] = [];
  readonly #begun = new Map<string, Promise<Listing>>();
  #held = 0;
  /** The folder that the walk is in. */
  #here: Listing = { entries: [], links: new Map(), real: new Map() };

  constructor(flight: InFlight) {
    this.#flight = flight;
  }

  /** The folders below the one that the walk is in, in the order in which it comes to them. */
  expect(paths: readonly string[]): void {
    for (let i = paths.length - 1; i >= 0; i--) this.#expected.push(paths[i]!);
    this.#begin();
  }

  /** Throws `SourceTimeoutError`. */
  async ready(path: string): Promise<void> {
    if (!this.#begun.has(path)) {
      const place = this.#expected.lastIndexOf(path);
      if (place !== -1) this.#expected.splice(place, 1);
      this.#list(path);
    }
    this.#here = await this.#begun.get(path)!;
    this.#begun.delete(path);
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
    // Whoever waits for it hears of its failure.
    listing.then(
      () => this.#begin(),
      () => undefined,
    );
    this.#begun.set(path, listing);
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
