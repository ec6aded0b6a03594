/** The page: controls that choose samples on the left, the samples on the right. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { DatasetInfo, Mark, MarkList, Query, Row } from '../src/view/protocol.js';
import { api, CAN } from './api.js';
import { Filters } from './choose/filters.js';
import { SortBox } from './choose/sort-box.js';
import { WhereBox } from './choose/where-box.js';
import { Grid } from './grid/grid.js';
import type { ModelState } from './link/state.js';
import { useStateLink } from './link/use-state-link.js';
import { Marks } from './marks/marks.js';
import { ModelView } from './model/model-view.js';
import { whenPicturesStand } from './picture/picture-queue.js';
import { bytes, count, shown } from './text.js';
import { Zoom } from './zoom/zoom.js';

/** Columns are read after the first pictures, but at most this many milliseconds later. */
const FIRST_MS = 1000;

export function App() {
  const [info, setInfo] = useState<DatasetInfo | null>(null);
  const [fault, setFault] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    api.dataset(abort.signal).then(setInfo, (error: Error) => {
      if (!abort.signal.aborted) setFault(error);
    });
    return () => abort.abort();
  }, []);
  if (info !== null) return <Viewer info={info} onInfo={setInfo} />;
  return <main class="opening">{fault === null ? 'Opening the dataset …' : shown(fault.message)}</main>;
}

interface ViewerProps {
  readonly info: DatasetInfo;
  readonly onInfo: (info: DatasetInfo) => void;
}

function Viewer({ info, onInfo }: ViewerProps) {
  const [state, change] = useStateLink();
  const [total, setTotal] = useState<number | null>(null);
  const [fault, setFault] = useState<Error | null>(null);
  const [isChoosing, setChoosing] = useState(false);
  const { list, changed, mark, save } = useMarks(setFault);
  const { query, at, size, extra, sample, view, model } = state;

  const latest = useRef(query);
  latest.current = query;
  const setQuery = useCallback(
    (part: Partial<Query>) => change({ query: { ...latest.current, ...part }, at: 0 }, 'push'),
    [change],
  );
  const setWhere = useCallback((where: string) => setQuery({ where }), [setQuery]);
  const setModel = useCallback((given: ModelState) => change({ model: given }), [change]);
  const onAt = useCallback((place: number) => change({ at: place }), [change]);

  /** Position of the open sample in the list, or null if it is unknown. */
  const [place, setPlace] = useState<number | null>(null);
  const open = useCallback(
    (index: number | null, where: number | null = null) => {
      setPlace(where);
      change({ sample: index }, 'push');
    },
    [change],
  );
  const onOpen = useCallback((row: Row, where: number) => open(row.index, where), [open]);
  const onMark = useCallback(({ index }: Row, given: Mark | null) => CAN.mark && mark(index, given), [mark]);
  const step = (by: number) => {
    const next = (place ?? -1) + by;
    if (place === null || next < 0 || next >= (total ?? 0)) return null;
    return () => {
      api.rows(query, next, 1, new AbortController().signal).then(({ rows: [row] }) => {
        if (row !== undefined) open(row.index, next);
      }, setFault);
    };
  };
  return (
    <>
      <header>
        <h1>
          <bdi>{shown(info.location)}</bdi>
        </h1>
        <p role="status">
          {total === null || total === info.samples
            ? `${count(info.samples)} samples`
            : `${count(total)} of ${count(info.samples)} samples`}
          {` · ${count(info.shards)} ${info.format} ${info.shards === 1 ? 'shard' : 'shards'} · ${bytes(info.bytes)}`}
        </p>
        <nav aria-label="Views">
          <button
            type="button"
            class="choose"
            aria-expanded={isChoosing}
            aria-controls="choose"
            onClick={() => setChoosing(!isChoosing)}
          >
            Choose
          </button>
          <button type="button" aria-pressed={view === 'grid'} onClick={() => change({ view: 'grid' }, 'push')}>
            Samples
          </button>
          {CAN.model && (
            <button type="button" aria-pressed={view === 'model'} onClick={() => change({ view: 'model' }, 'push')}>
              What the model sees
            </button>
          )}
        </nav>
      </header>
      <aside id="choose" class={isChoosing ? 'open' : ''} aria-label="Which samples">
        <WhereBox where={query.where} columns={info.columns} fault={fault} onChange={setWhere} />
        <SortBox
          sort={query.sort}
          size={size}
          columns={info.columns}
          onSort={(sort) => setQuery({ sort })}
          onSize={(pixels) => change({ size: pixels })}
        />
        {CAN.mark && (
          <Marks info={info} list={list} onOpen={open} onTakeAway={(index) => mark(index, null)} onSave={save} />
        )}
        {info.unread > 0 && <Unread info={info} onInfo={onInfo} />}
        <Filters
          query={query}
          columns={info.columns}
          extra={extra}
          onQuery={setQuery}
          onExtra={(columns) => change({ extra: columns })}
        />
        {info.sizesFrom !== null && (
          <p class="soft">
            No index has widths and heights yet: <code>{shown(info.sizesFrom)}</code> looks at them.
          </p>
        )}
        {info.omitted.length > 0 && (
          <p class="soft">{`Only where knows these columns: ${info.omitted.map(shown).join(', ')}`}</p>
        )}
      </aside>
      <main>
        {CAN.model && view === 'model' ? (
          <ModelView query={query} at={at} model={model} onModel={setModel} />
        ) : (
          <Grid
            query={query}
            size={size}
            at={at}
            marked={changed}
            onAt={onAt}
            onTotal={setTotal}
            onFault={setFault}
            onOpen={onOpen}
            onMark={onMark}
          />
        )}
      </main>
      {sample !== null && (
        <Zoom
          index={sample}
          classes={info.classes}
          mark={list.marks.find(({ index }) => index === sample)?.mark ?? null}
          onNext={step(1)}
          onBefore={step(-1)}
          onMark={(given) => CAN.mark && mark(sample, given)}
          onClose={() => open(null)}
        />
      )}
    </>
  );
}

/** Reads the columns of all samples, for histograms and sorting: once pictures are shown if there are few samples, otherwise on request. */
function Unread({ info, onInfo }: ViewerProps) {
  const [isReading, setReading] = useState(info.isSmall);
  const [fault, setFault] = useState<Error | null>(null);
  useEffect(() => {
    if (!isReading) return undefined;
    const abort = new AbortController();
    whenPicturesStand(FIRST_MS)
      .then(() => api.readColumns(abort.signal))
      .then(onInfo, (error: Error) => {
        if (abort.signal.aborted) return;
        setFault(error);
        setReading(false);
      });
    return () => abort.abort();
  }, [isReading, onInfo]);
  return (
    <section class="filter" aria-label="Columns">
      <button type="button" disabled={isReading} onClick={() => setReading(true)}>
        {isReading ? 'Reading all indexes …' : 'Show histograms and sort'}
      </button>
      {!isReading && <p class="soft">{`Reads the indexes of all ${count(info.unread)} samples first.`}</p>}
      {fault !== null && <p class="fault-text">{shown(fault.message)}</p>}
    </section>
  );
}

/** The marks as the server stores them, and the mark that was made last. */
function useMarks(onFault: (error: Error) => void) {
  const [list, setList] = useState<MarkList>({ marks: [], saved: null });
  const [changed, setChanged] = useState<{ readonly index: number; readonly mark: Mark | null } | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    api.marks(abort.signal).then(setList, () => undefined);
    return () => abort.abort();
  }, []);
  const mark = useCallback(
    (index: number, given: Mark | null) => {
      api.mark(index, given).then((now) => {
        setList(now);
        setChanged({ index, mark: given });
      }, onFault);
    },
    [onFault],
  );
  const save = useCallback(async (name: string) => setList(await api.saveMarks(name)), []);
  return { list, changed, mark, save };
}
