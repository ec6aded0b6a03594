/** The samples of a query. The page holds only the visible rows and some above and below, of up to millions. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { Mark, Query, Row } from '../../src/view/protocol.js';
import { hurry, isHurried, PAUSE_MS } from '../picture/picture-queue.js';
import { Cell } from './cell.js';
import { RowStore } from './row-store.js';
import { ScrollWindow } from './scroll-window.js';

interface GridProps {
  readonly query: Query;
  readonly size: number;
  /** Position in the list of the first visible sample. */
  readonly at: number;
  /** The mark that was made last, and the index of its sample. */
  readonly marked: { readonly index: number; readonly mark: Mark | null } | null;
  readonly onAt: (at: number) => void;
  readonly onTotal: (total: number) => void;
  readonly onFault: (error: Error | null) => void;
  readonly onOpen: (row: Row, place: number) => void;
  readonly onMark: (row: Row, mark: Mark | null) => void;
}

/** Space around a picture, and height of the two lines below it. */
const CELL_GAP = 12;
const CAPTION = 52;
/** Part of the window's height. A user who scrolls further than this in one frame is not looking at pictures. */
const HURRY = 0.25;
/** Milliseconds without movement after which scrolling has ended. */
const REST_MS = 200;

export function Grid(props: GridProps) {
  const { query, size, at, marked, onAt, onTotal, onFault, onOpen, onMark } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const box = useBox(scroller);
  const [, draw] = useReducer((turn: number) => turn + 1, 0);
  const [cursor, setCursor] = useState(at);

  const store = useMemo(() => {
    const made: RowStore = new RowStore(
      query,
      () => {
        if (made.total !== null) onTotal(made.total);
        onFault(null);
        draw(0);
      },
      onFault,
    );
    return made;
  }, [query, onTotal, onFault]);
  useEffect(() => () => store.close(), [store]);
  useEffect(() => {
    if (marked !== null) store.setMark(marked.index, marked.mark);
  }, [marked, store]);

  const columns = Math.max(1, Math.floor(box.width / (size + CELL_GAP)));
  const total = store.total ?? 0;
  const rows = Math.ceil(total / columns);
  const view = useMemo(() => new ScrollWindow(size + CAPTION, rows, box.height), [size, rows, box.height]);

  // After a change of the list's length or width, the list starts at the position of the link, or keeps its last
  // position.
  const place = useRef(at);
  const measured = useRef<number | null>(null);
  useLayoutEffect(() => {
    const element = scroller.current!;
    element.scrollTop = view.jump(Math.floor(place.current / columns) * view.rowHeight);
    draw(0);
  }, [view, columns]);
  const storeBefore = useRef(store);
  if (storeBefore.current !== store) {
    storeBefore.current = store;
    place.current = 0;
  }

  const rest = useRef(0);
  // After a link or the Back button, the last position of the list no longer counts.
  useLayoutEffect(() => {
    if (at === place.current) return;
    clearTimeout(rest.current);
    place.current = at;
    setCursor(at);
    scroller.current!.scrollTop = view.jump(Math.floor(at / columns) * view.rowHeight);
    draw(0);
  }, [at, view, columns]);

  const { first, last } = view.shown();
  useEffect(() => {
    const want = () => store.want(first * columns, Math.max(last * columns, 1));
    if (!isHurried()) return want();
    const later = setTimeout(want, PAUSE_MS);
    return () => clearTimeout(later);
  }, [store, first, last, columns]);
  useLayoutEffect(() => {
    if (measured.current === null) return;
    performance.measure('grid', { start: measured.current });
    measured.current = null;
  });

  const onScroll = useCallback(() => {
    const began = performance.now();
    const element = scroller.current!;
    const { first: wasFirst, last: wasLast } = view.shown();
    const base = view.base;
    const before = view.top;
    const seen = element.scrollTop;
    view.scrolled(seen);
    if (Math.abs(view.top - before) > HURRY * view.viewport) hurry();
    const now = view.shown();
    clearTimeout(rest.current);
    rest.current = setTimeout(() => {
      // The element has moved again and its event is still to come. Setting the scroll bar now would undo the movement.
      if (element.scrollTop !== seen) return;
      const top = view.rest();
      if (top !== element.scrollTop) element.scrollTop = top;
      place.current = Math.round(view.top / view.rowHeight) * columns;
      onAt(place.current);
      draw(0);
    }, REST_MS) as unknown as number;
    if (now.first !== wasFirst || now.last !== wasLast || base !== view.base) {
      measured.current = began;
      draw(0);
    } else performance.measure('grid', { start: began });
  }, [view, columns, onAt]);
  useEffect(() => () => clearTimeout(rest.current), []);

  const moveTo = (wanted: number) => {
    const next = Math.max(0, Math.min(total - 1, wanted));
    setCursor(next);
    const top = Math.floor(next / columns) * view.rowHeight;
    const element = scroller.current!;
    if (top < view.top) element.scrollTop = view.jump(top);
    else if (top + view.rowHeight > view.top + view.viewport) {
      element.scrollTop = view.jump(top + view.rowHeight - view.viewport);
    }
    draw(0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || total === 0) return;
    const page = Math.max(1, Math.floor(view.viewport / view.rowHeight)) * columns;
    const ways: Record<string, number> = {
      ArrowLeft: cursor - 1,
      ArrowRight: cursor + 1,
      ArrowUp: cursor - columns,
      ArrowDown: cursor + columns,
      PageUp: cursor - page,
      PageDown: cursor + page,
      Home: 0,
      End: total - 1,
    };
    const row = store.get(cursor);
    const marks: Record<string, Mark | null> = { w: { kind: 'wrong' }, x: { kind: 'exclude' }, u: null };
    if (event.key in ways) moveTo(ways[event.key]!);
    else if (event.key === 'Enter' && row !== null) onOpen(row, cursor);
    else if (event.key in marks && row !== null) onMark(row, marks[event.key]!);
    else return;
    event.preventDefault();
  };
  const onClick = (event: MouseEvent) => {
    const cell = (event.target as Element).closest('[data-place]');
    if (cell === null) return;
    const clicked = Number((cell as HTMLElement).dataset.place);
    setCursor(clicked);
    const row = store.get(clicked);
    if (row !== null) onOpen(row, clicked);
  };

  const shownRows = Array.from({ length: last - first }, (_, i) => first + i);
  return (
    <div
      class="grid"
      ref={scroller}
      role="grid"
      tabIndex={0}
      aria-label="Samples"
      aria-rowcount={rows}
      aria-colcount={columns}
      aria-activedescendant={total > 0 ? `cell-${cursor}` : undefined}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onClick={onClick}
    >
      <div class="list" role="presentation" style={{ height: `${view.height}px` }}>
        {shownRows.map((row) => (
          <div
            class="row"
            role="row"
            key={row % view.pool}
            aria-rowindex={row + 1}
            style={{
              top: `${row * view.rowHeight - view.base}px`,
              height: `${view.rowHeight}px`,
              gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
            }}
          >
            {Array.from({ length: Math.min(columns, total - row * columns) }, (_, column) => {
              const here = row * columns + column;
              return (
                <Cell
                  key={column}
                  place={here}
                  row={store.get(here)}
                  size={size}
                  sortedBy={query.sort?.column ?? null}
                  isCursor={here === cursor}
                  columnIndex={column}
                />
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Size of an element without its scroll bar. */
function useBox(ref: { readonly current: HTMLElement | null }): { readonly width: number; readonly height: number } {
  const [box, setBox] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current!;
    const look = () => setBox({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, [ref]);
  return box;
}
