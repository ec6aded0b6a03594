/** Histogram of a numeric column. Its range is selected by dragging, or by typing. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { NumberHistogram, Range } from '../../src/view/protocol.js';
import { count, value } from '../text.js';

interface NumberBarsProps {
  readonly histogram: NumberHistogram;
  readonly range: Range | null;
  readonly onRange: (range: Range | null) => void;
}

export function NumberBars({ histogram: { column, bins, missing }, range, onRange }: NumberBarsProps) {
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const area = useRef<HTMLDivElement>(null);
  if (bins.length === 0) return <p class="soft">No sample has a value that is known.</p>;
  const most = Math.max(...bins.map(({ all }) => all));
  const binAt = (x: number) => {
    const { left, width } = area.current!.getBoundingClientRect();
    return Math.max(0, Math.min(bins.length - 1, Math.floor(((x - left) / width) * bins.length)));
  };
  const rangeOf = ([a, b]: readonly [number, number]): Range => [bins[Math.min(a, b)]!.from, bins[Math.max(a, b)]!.to];
  const shownRange = drag === null ? range : rangeOf(drag);
  const isIn = (from: number, to: number) => shownRange === null || (from < shownRange[1] && to > shownRange[0]);
  return (
    <>
      <div
        class="bars"
        ref={area}
        aria-hidden="true"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([binAt(event.clientX), binAt(event.clientX)]);
        }}
        onPointerMove={(event) => drag !== null && setDrag([drag[0], binAt(event.clientX)])}
        onPointerUp={() => {
          if (drag === null) return;
          const [from, to] = rangeOf(drag);
          // Selecting the same range again removes the filter.
          onRange(range !== null && range[0] === from && range[1] === to ? null : [from, to]);
          setDrag(null);
        }}
        onPointerCancel={() => setDrag(null)}
      >
        {bins.map(({ from, to, all, selected }) => (
          <div
            class={isIn(from, to) ? 'bin' : 'bin out'}
            key={from}
            title={`${value(column, from)} to ${value(column, to)}: ${count(selected)} of ${count(all)}`}
          >
            <div class="all" style={{ height: heightOf(all, most) }} />
            <div class="selected" style={{ height: heightOf(selected, most) }} />
          </div>
        ))}
      </div>
      <div class="ends" aria-hidden="true">
        <span>{value(column, bins[0]!.from)}</span>
        <span>{value(column, bins.at(-1)!.to)}</span>
      </div>
      <div class="range">
        <Limit
          name={`${column} from`}
          given={range?.[0] ?? null}
          usual={bins[0]!.from}
          onChange={(from) => onRange(from === null ? null : [from, range?.[1] ?? bins.at(-1)!.to])}
        />
        <Limit
          name={`${column} below`}
          given={range?.[1] ?? null}
          usual={bins.at(-1)!.to}
          onChange={(to) => onRange(to === null ? null : [range?.[0] ?? bins[0]!.from, to])}
        />
      </div>
      {missing.all > 0 && <p class="soft">{`${count(missing.all)} without a value`}</p>}
    </>
  );
}

/** A bin that is not empty is always visible, however few samples it has. */
function heightOf(part: number, most: number): string {
  return part === 0 ? '0' : `max(2px, ${(100 * part) / most}%)`;
}

interface LimitProps {
  readonly name: string;
  readonly given: number | null;
  readonly usual: number;
  readonly onChange: (value: number | null) => void;
}

function Limit({ name, given, usual, onChange }: LimitProps) {
  const [text, setText] = useState('');
  useEffect(() => setText(given === null ? '' : String(given)), [given]);
  return (
    <input
      type="text"
      inputmode="decimal"
      aria-label={name}
      placeholder={String(usual)}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={() => {
        const typed = Number(text);
        if (text.trim() === '') onChange(null);
        else if (Number.isFinite(typed)) onChange(typed);
        else setText(given === null ? '' : String(given));
      }}
    />
  );
}
