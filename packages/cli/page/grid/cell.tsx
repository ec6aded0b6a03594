/** One sample of the grid. */

import type { Row } from '../../src/view/protocol.js';
import { pictures } from '../api.js';
import { markText } from '../marks/mark-text.js';
import { Picture } from '../picture/picture.js';
import { count, shown, value } from '../text.js';
import { memo } from './memo.js';

interface CellProps {
  readonly place: number;
  readonly row: Row | null;
  readonly size: number;
  readonly sortedBy: string | null;
  readonly isCursor: boolean;
  readonly columnIndex: number;
}

export const Cell = memo(function Cell({ place, row, size, sortedBy, isCursor, columnIndex }: CellProps) {
  return (
    <div
      class={isCursor ? 'cell cursor' : 'cell'}
      role="gridcell"
      id={`cell-${place}`}
      data-place={place}
      aria-selected={isCursor}
      aria-colindex={columnIndex + 1}
    >
      {row === null ? (
        <span class="waiting" />
      ) : (
        <>
          <span class="frame">
            <Picture url={pictures.thumbnail(row.index, size)} alt="" />
            {row.mark !== null && <span class={`mark ${row.mark.kind}`}>{markText(row.mark)}</span>}
          </span>
          <span class="name" dir="auto">
            {shown(row.key)}
          </span>
          <span class="about">
            <bdi>{row.cls === null ? 'no class' : shown(row.cls)}</bdi>
            {sortedBy === null || row.value === row.cls ? sizeText(row) : ` · ${value(sortedBy, row.value)}`}
          </span>
        </>
      )}
    </div>
  );
});

function sizeText({ width, height }: Row): string {
  return width > 0 ? ` · ${count(width)}×${count(height)}` : '';
}
