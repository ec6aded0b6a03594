/** The histograms. Each of them filters samples. */
import { useRef } from 'preact/hooks';
import type { ColumnInfo, Query } from '../../src/view/protocol.js';
import { api } from '../api.js';
import { whenPicturesStand } from '../picture/picture-queue.js';
import { shown } from '../text.js';
import { useFetched } from '../use-fetched.js';
import { CategoryBars, FIND_FROM } from './category-histogram.js';
import { NumberBars } from './number-histogram.js';

interface FiltersProps {
  readonly query: Query;
  readonly columns: readonly ColumnInfo[];
  readonly extra: readonly string[];
  readonly onQuery: (part: Partial<Query>) => void;
  readonly onExtra: (extra: readonly string[]) => void;
}

/** Heights in style.css, in pixels: a value of a category, the list of values at most, the search box. */
const [VALUE_HEIGHT, VALUES_HEIGHT, FIND_HEIGHT] = [26, 260, 34];
/** Histograms wait for the first pictures, but at most this many milliseconds. */
const FIRST_MS = 1000;
const USUAL = ['class', 'width', 'height', 'aspect', 'bytes', 'kind'];

export function Filters({ query, columns, extra, onQuery, onExtra }: FiltersProps) {
  const known = new Map(columns.flatMap((one) => (one.kind === 'text' ? [] : [[one.name, one]])));
  // Filters whose histogram is closed are shown as well, so that no filter is hidden.
  const filtered = [...Object.keys(query.ranges), ...Object.keys(query.values)];
  const open = [...new Set([...USUAL, ...extra, ...filtered])].flatMap((name) => known.get(name) ?? []);
  const others = [...known.keys()].filter((name) => !open.some((one) => one.name === name));
  return (
    <div class="filters">
      {open.map((column) => (
        <Filter
          key={column.name}
          info={column}
          query={query}
          onQuery={onQuery}
          onClose={extra.includes(column.name) ? () => onExtra(extra.filter((one) => one !== column.name)) : null}
        />
      ))}
      {others.length > 0 && (
        <>
          <label for="more">Another histogram</label>
          <select
            id="more"
            value=""
            onChange={({ currentTarget }) => {
              if (currentTarget.value !== '') onExtra([...extra, currentTarget.value]);
              currentTarget.value = '';
            }}
          >
            <option value="">of a column …</option>
            {others.map((name) => (
              <option key={name} value={name}>
                {shown(name)}
              </option>
            ))}
          </select>
        </>
      )}
    </div>
  );
}

interface FilterProps {
  readonly info: ColumnInfo;
  readonly query: Query;
  readonly onQuery: (part: Partial<Query>) => void;
  readonly onClose: (() => void) | null;
}

function Filter({ info, query, onQuery, onClose }: FilterProps) {
  const column = info.name;
  const isFirst = useRef(true);
  const { where, ranges, values } = query;
  const asked: Query = { where, ranges: without(ranges, column), values: without(values, column), sort: null };
  const name = JSON.stringify([column, asked]);
  const { got, fault } = useFetched(name, async (signal) => {
    if (isFirst.current) await whenPicturesStand(FIRST_MS);
    isFirst.current = false;
    return api.histogram(asked, column, signal);
  });
  // A column may have the name of a property of every object, such as constructor.
  const range = Object.hasOwn(ranges, column) ? ranges[column]! : null;
  const chosen = Object.hasOwn(values, column) ? values[column]! : [];
  const isFiltered = range !== null || chosen.length > 0;
  return (
    <section class="filter" aria-label={shown(column)}>
      <div class="filter-head">
        <h2>{shown(column)}</h2>
        {isFiltered && (
          <button
            type="button"
            onClick={() => onQuery({ ranges: without(ranges, column), values: without(values, column) })}
          >
            all
          </button>
        )}
        {onClose !== null && !isFiltered && (
          <button type="button" aria-label={`close ${column}`} onClick={onClose}>
            ×
          </button>
        )}
      </div>
      {got === null && <div class="to-come" style={{ height: `${heightOf(info)}px` }} />}
      {got?.kind === 'number' && (
        <NumberBars
          histogram={got}
          range={range}
          onRange={(given) =>
            onQuery({ ranges: given === null ? without(ranges, column) : { ...ranges, [column]: given } })
          }
        />
      )}
      {got?.kind === 'category' && (
        <CategoryBars
          histogram={got}
          chosen={chosen}
          onChosen={(given) =>
            onQuery({ values: given.length === 0 ? without(values, column) : { ...values, [column]: given } })
          }
        />
      )}
      {got === null && fault !== null && <p class="soft">{shown(fault.message)}</p>}
    </section>
  );
}

/** Height of a histogram before it is loaded, so that the content below it does not move. */
function heightOf({ kind, names }: ColumnInfo): number {
  if (kind === 'number') return 104;
  return Math.min(VALUES_HEIGHT, names * VALUE_HEIGHT) + (names > FIND_FROM ? FIND_HEIGHT : 0);
}

function without<T>(given: Readonly<Record<string, T>>, name: string): Record<string, T> {
  return Object.fromEntries(Object.entries(given).filter(([key]) => key !== name));
}
