import { inLanes } from '@shardtool/base';
import type { Source } from '../../../source.js';
import { planRuns, type ReadRun } from '../../bytes/read-runs.js';
import { fill } from '../footer.js';
import { liesOpen, type Page, type PageCache, plainPage } from './pages.js';

/** Concurrent reads for one read of this source. */
const READS_AT_ONCE = 8;

/** A range of a page to read, and its destination. */
export interface Piece {
  readonly at: number;
  readonly bytes: number;
  readonly to: number;
}

/** The range of a page that is read, and the requested pieces in it. */
interface PageSpan {
  readonly page: Page;
  readonly pieces: readonly Piece[];
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Reads the requested pieces of pages into `target`, several runs of pages concurrently. Bytes of a plain page go
 * directly to their destination; any other page is decompressed as a whole and kept in `cache`.
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
      // The pages of a run share its memory, and are cached one by one.
      const plain = plainPage(page, run.spans.length === 1 ? bytes : bytes.slice(), source.location);
      cache.set(page, plain);
      copy(plain, 0, pieces, target);
    }
  }
}

/** `from`: the offset in the page of the first byte of `bytes`. */
function copy(bytes: Uint8Array, from: number, pieces: readonly Piece[], target: Uint8Array): void {
  for (const piece of pieces) target.set(bytes.subarray(piece.at - from, piece.at - from + piece.bytes), piece.to);
}

/** Adds a piece to those requested of a page. */
export function addPiece(wanted: Map<Page, Piece[]>, page: Page, piece: Piece): void {
  const pieces = wanted.get(page);
  if (pieces === undefined) wanted.set(page, [piece]);
  else pieces.push(piece);
}
