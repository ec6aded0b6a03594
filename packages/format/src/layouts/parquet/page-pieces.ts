import { inLanes } from '@shardtool/base';
import { planRuns, type ReadRun } from '../../shard-index/read-runs.js';
import type { Source } from '../../source.js';
import { fill } from './footer.js';
import { liesOpen, type Page, type PageCache, plainPage } from './pages.js';

/** Reads that are under way at once for one read. */
const READS_AT_ONCE = 8;

/** Bytes of a page that are wanted, and where they go. */
export interface Piece {
  readonly at: number;
  readonly bytes: number;
  readonly to: number;
}

/** What of a page is read, and what of that is wanted. */
interface PageSpan {
  readonly page: Page;
  readonly pieces: readonly Piece[];
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Reads what is wanted of pages into `target`, several runs of them at a time: bytes of a page that lies open go where they are
 * wanted, any other page is unpacked whole and kept in `cache`.
 */
export async function readPieces(
  source: Source,
  wanted: ReadonlyMap<Page, readonly Piece[]>,
  target: Uint8Array,
  cache: PageCache,
): Promise<void> {
  const spans: PageSpan[] = [];
  for (const [page, pieces] of wanted) {
    const known = cache.get(page);
    if (known === undefined) spans.push(spanOf(page, pieces, source));
    else copy(known, 0, pieces, target);
  }
  await inLanes(planRuns(spans), READS_AT_ONCE, (run) => readRun(source, run, target, cache));
}

function spanOf(page: Page, pieces: readonly Piece[], source: Source): PageSpan {
  if (!liesOpen(page, source)) return { page, pieces, offset: page.offset, bytes: page.bytes };
  const [from, to] = [pieces[0]!.at, pieces.at(-1)!.at + pieces.at(-1)!.bytes];
  return { page, pieces, offset: page.offset + from, bytes: to - from };
}

async function readRun(source: Source, run: ReadRun<PageSpan>, target: Uint8Array, cache: PageCache): Promise<void> {
  const [only] = run.spans;
  if (run.spans.length === 1 && only!.pieces.length === 1 && liesOpen(only!.page, source)) {
    const { to, bytes } = only!.pieces[0]!;
    await fill(source, run.offset, target.subarray(to, to + bytes));
    return;
  }
  const stored = new Uint8Array(run.bytes);
  await fill(source, run.offset, stored);
  for (const { page, pieces, offset, bytes: length } of run.spans) {
    const bytes = stored.subarray(offset - run.offset, offset - run.offset + length);
    if (liesOpen(page, source)) copy(bytes, offset - page.offset, pieces, target);
    else {
      // Pages of a run share its memory, and are kept one by one.
      const plain = plainPage(page, run.spans.length === 1 ? bytes : bytes.slice(), source.location);
      cache.set(page, plain);
      copy(plain, 0, pieces, target);
    }
  }
}

/** `from`: where in the page `bytes` begin. */
function copy(bytes: Uint8Array, from: number, pieces: readonly Piece[], target: Uint8Array): void {
  for (const piece of pieces) target.set(bytes.subarray(piece.at - from, piece.at - from + piece.bytes), piece.to);
}

/** Adds to what is wanted of a page. */
export function addPiece(wanted: Map<Page, Piece[]>, page: Page, piece: Piece): void {
  const pieces = wanted.get(page);
  if (pieces === undefined) wanted.set(page, [piece]);
  else pieces.push(piece);
}
