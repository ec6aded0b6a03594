/** Number of samples per value of a column, and the values that are selected. */
import { useState } from 'preact/hooks';
import type { CategoryHistogram } from '../../src/view/protocol.js';
import { count, shown } from '../text.js';

interface CategoryBarsProps {
  readonly histogram: CategoryHistogram;
  readonly chosen: readonly string[];
  readonly onChosen: (chosen: readonly string[]) => void;
}

/** Number of values that are listed. The search box finds the others. */
const LISTED = 60;
export const FIND_FROM = 12;

export function CategoryBars({ histogram: { column, values, more, missing }, chosen, onChosen }: CategoryBarsProps) {
  const [typed, setTyped] = useState('');
  const most = Math.max(1, ...values.map(({ all }) => all));
  const found = values.filter(({ value }) => value.toLowerCase().includes(typed.toLowerCase()));
  const listed = found.filter(({ value }, i) => i < LISTED || chosen.includes(value));
  const hidden = found.length - listed.length + more;
  const toggle = (value: string) =>
    onChosen(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  return (
    <>
      {values.length > FIND_FROM && (
        <input
          class="find"
          type="search"
          aria-label={`Find a value of ${column}`}
          placeholder="find"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      <ul class="values">
        {listed.map(({ value, all, selected }) => (
          <li key={value}>
            <label>
              <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} />
              <span class="value-name">
                <bdi>{shown(value)}</bdi>
              </span>
              <span class="value-count">{selected === all ? count(all) : `${count(selected)} of ${count(all)}`}</span>
              <span class="value-bar" aria-hidden="true">
                <span class="all" style={{ width: `${(100 * all) / most}%` }} />
                <span class="selected" style={{ width: `${(100 * selected) / most}%` }} />
              </span>
            </label>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p class="soft">{`and ${count(hidden)} more: type to find them`}</p>}
      {missing.all > 0 && <p class="soft">{`${count(missing.all)} without one`}</p>}
    </>
  );
}
