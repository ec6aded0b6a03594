import { compareCodePoints, WakeSignal } from '@shardtool/base';
import type { ListPages } from '../list-pages.js';
import type { Entry } from '../storage.js';
import type { ListPage } from './list.js';

/** One request of ListObjectsV2. */
export interface ListAsk {
  /** Only names that begin with this. Default: all names. */
  readonly folder?: string | undefined;
  /** Only names after this one, in the order of their UTF-8. */
  readonly startAfter?: string | undefined;
  /** Names with a further slash are combined up to that slash. */
  readonly byFolder?: boolean;
  /** Continuation token of the previous page. */
  readonly token?: string | undefined;
}

export type AskPage = (ask: ListAsk) => Promise<ListPage>;

/** Functions that list a bucket. */
export interface Lists {
  readonly ask: AskPage;
  /** Creates the check that one list advances. */
  pages(): ListPages;
}

/** Yields all pages of one list. Throws FileError if the list does not advance. */
export async function* pagesOf(
  asked: Omit<ListAsk, 'token'>,
  ask: AskPage,
  pages: ListPages,
): AsyncGenerator<ListPage> {
  for (let token: string | undefined; ; ) {
    const page = await ask({ ...asked, token });
    const { next } = page;
    pages.take(page.entries[0]?.name ?? page.folders[0], next ?? null);
    yield page;
    if (next === null) return;
    if (next === undefined) throw pages.withoutNext();
    token = next;
  }
}

/** Number of parts of a list that are requested concurrently, and maximum number of parts. */
const AT_ONCE = 32;
const MOST_PARTS = 1000;
/** Minimum number of pages of a part. */
const PAGES_A_PART = 2;
/** Number of folders that are enough to cut at. If a level has fewer, its subfolders are used, down to this depth. */
const ENOUGH_FOLDERS = 64;
const MOST_DEPTH = 3;
/** Maximum number of pages of one folder that are searched for subfolders. */
const MOST_OUTLINE_PAGES = 8;
/** Maximum number of entries that are listed ahead. */
const HELD_ENTRIES = 200_000;

/** Names after `from`, up to and including `to`. Without `to`: up to the end. */
interface Part {
  readonly from: string;
  readonly to: string | undefined;
}

/**
 * Yields all files of a bucket, in the order of the store. A page has a thousand names, and the start of the next page is known only
 * when the page has arrived. So a long list is cut at folders, and its parts are listed concurrently. The names of one folder are
 * listed page by page.
 */
export async function* listSideBySide(lists: Lists): AsyncGenerator<Entry> {
  const first = await lists.ask({});
  yield* first.entries;
  const end = first.entries.at(-1)?.name ?? '';
  if (first.next === null) return;
  if (first.next === undefined) throw lists.pages().withoutNext();
  const cuts = await cutsBehind(lists, end);
  const listing = new PartsListing(
    lists,
    [end, ...cuts].map((from, i) => ({ from, to: cuts[i] })),
  );
  try {
    for (const pages of listing.parts()) for await (const entries of pages) yield* entries;
  } finally {
    listing.stop();
  }
}

/** Lists parts ahead of the part that is read. */
class PartsListing {
  readonly #lists: Lists;
  readonly #parts: readonly Part[];
  readonly #change = new WakeSignal();
  #held = 0;
  /** The part that is read: it continues whatever is held. */
  #front = 0;
  #isStopped = false;

  constructor(lists: Lists, parts: readonly Part[]) {
    this.#lists = lists;
    this.#parts = parts;
  }

  /** Yields the lists of the parts. The caller must read each list to its end before it takes the next. */
  *parts(): Generator<AsyncGenerator<Entry[]>> {
    const begun: AsyncGenerator<Entry[]>[] = [];
    for (let part = 0; part < this.#parts.length; part++) {
      this.#front = part;
      this.#change.notify();
      while (begun.length < Math.min(part + AT_ONCE, this.#parts.length)) begun.push(this.#begin(begun.length));
      yield begun[part]!;
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#change.notify();
  }

  #begin(part: number): AsyncGenerator<Entry[]> {
    const pages: Entry[][] = [];
    const news = new WakeSignal();
    let ended = false;
    const listing = this.#list(part, (entries) => {
      this.#held += entries.length;
      pages.push(entries);
      news.notify();
    }).finally(() => {
      ended = true;
      news.notify();
    });
    // The reader of this part receives its error.
    listing.catch(() => undefined);
    const read = async function* (this: PartsListing): AsyncGenerator<Entry[]> {
      for (;;) {
        const entries = pages.shift();
        if (entries !== undefined) {
          this.#held -= entries.length;
          this.#change.notify();
          yield entries;
        } else if (ended) return await listing;
        else await news.wait();
      }
    };
    return read.call(this);
  }

  async #list(part: number, take: (entries: Entry[]) => void): Promise<void> {
    const { from, to } = this.#parts[part]!;
    const { ask, pages } = this.#lists;
    for await (const { entries } of pagesOf({ startAfter: from }, ask, pages())) {
      // A store that ignores `start-after` begins at the first name.
      take(entries.filter(({ name }) => isBehind(name, from) && (to === undefined || !isBehind(name, to))));
      const last = entries.at(-1)?.name;
      if (to !== undefined && last !== undefined && isBehind(last, to)) return;
      while (this.#held >= HELD_ENTRIES && part !== this.#front && !this.#isStopped) await this.#change.wait();
      if (this.#isStopped) return;
    }
  }
}

/**
 * Returns the names after `end` at which to cut the list, in ascending order: the folders of the first level that has
 * enough of them, and their parent folders.
 */
async function cutsBehind(lists: Lists, end: string): Promise<string[]> {
  let found: string[] = [];
  let level = [''];
  for (let depth = 0; depth < MOST_DEPTH && level.length > 0 && found.length < ENOUGH_FOLDERS; depth++) {
    level = (await Promise.all(level.map((folder) => foldersIn(lists, folder)))).flat();
    found = [...found, ...level];
  }
  const cuts = found.filter((folder) => isBehind(folder, end)).sort(compareCodePoints);
  const inFirstPage = found.length - cuts.length;
  const step = Math.max(1, PAGES_A_PART * inFirstPage, Math.ceil(cuts.length / MOST_PARTS));
  return cuts.filter((_, i) => i % step === 0);
}

/** Returns the first folders in a folder. */
async function foldersIn({ ask, pages }: Lists, folder: string): Promise<string[]> {
  const found: string[] = [];
  let seen = 0;
  for await (const page of pagesOf({ folder, byFolder: true }, ask, pages())) {
    found.push(...page.folders);
    if (++seen === MOST_OUTLINE_PAGES) break;
  }
  return found;
}

/** Returns true if a name comes after another in the order of their UTF-8. */
function isBehind(name: string, other: string): boolean {
  return compareCodePoints(name, other) > 0;
}
