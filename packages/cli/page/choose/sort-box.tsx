/** The column that sorts the samples. */
import type { ColumnInfo, Query } from '../../src/view/protocol.js';
import { SIZES } from '../link/state.js';
import { shown } from '../text.js';

interface SortBoxProps {
  readonly sort: Query['sort'];
  readonly size: number;
  readonly columns: readonly ColumnInfo[];
  readonly onSort: (sort: Query['sort']) => void;
  readonly onSize: (size: number) => void;
}

export function SortBox({ sort, size, columns, onSort, onSize }: SortBoxProps) {
  return (
    <div class="sort">
      <label for="sort">Sort by</label>
      <select
        id="sort"
        value={sort?.column ?? ''}
        onChange={({ currentTarget: { value } }) =>
          onSort(value === '' ? null : { column: value, descending: sort?.descending ?? false })
        }
      >
        <option value="">position</option>
        {columns.map(({ name }) => (
          <option key={name} value={name}>
            {shown(name)}
          </option>
        ))}
      </select>
      <button
        type="button"
        disabled={sort === null}
        aria-pressed={sort?.descending ?? false}
        onClick={() => sort !== null && onSort({ ...sort, descending: !sort.descending })}
      >
        {sort?.descending ? 'largest first' : 'smallest first'}
      </button>
      <label for="size">Pictures</label>
      <select id="size" value={size} onChange={({ currentTarget: { value } }) => onSize(Number(value))}>
        {SIZES.map((pixels) => (
          <option key={pixels} value={pixels}>
            {pixels} pixels
          </option>
        ))}
      </select>
    </div>
  );
}
