import type { GroupRange, McuGrid } from '../../kernels/crop-index.js';
import type { Rect, Reduction } from '../codec.js';

/** Width of a group in pixels. Wider groups make the index smaller, but more is decoded around each crop. */
const GROUP_PIXELS = 64;

/** Number of MCUs in a group. */
export function groupOf({ mcuWidth }: Pick<McuGrid, 'mcuWidth'>): number {
  return Math.max(1, Math.floor(GROUP_PIXELS / mcuWidth));
}

/**
 * The part of an image to decode for `crop`, which refers to the image at 1 / `reduction` of its size. Chroma is interpolated from
 * its neighbours after the reduction, so subsampled components need a margin of one pixel of the reduced image.
 */
export function rangeOf(grid: McuGrid, group: number, crop: Rect, reduction: Reduction): GroupRange {
  const { mcuWidth, mcuHeight, mcusX, mcusY, width, height } = grid;
  const marginX = mcuWidth > 8 ? 1 : 0;
  const marginY = mcuHeight > 8 ? 1 : 0;
  const unit = mcuWidth * group;
  const groups = Math.ceil(mcusX / group);
  let left = Math.floor((Math.max(0, crop.x - marginX) * reduction) / unit);
  let right = Math.min(groups, Math.ceil(Math.min(width, (crop.x + crop.width + marginX) * reduction) / unit));
  const top = Math.floor((Math.max(0, crop.y - marginY) * reduction) / mcuHeight);
  const bottom = Math.ceil(Math.min(height, (crop.y + crop.height + marginY) * reduction) / mcuHeight);
  // libjpeg-turbo does not interpolate chroma of at most 2 columns. So a part of a wider image must have more.
  const fewest = (mcuWidth / 4) * reduction;
  while (Math.min(width, right * unit) - left * unit <= fewest) {
    if (right < groups) right++;
    else if (left > 0) left--;
    else break;
  }
  return { left, right, top, bottom: Math.min(bottom, mcusY) };
}

/** The rectangle of a range, in pixels of the image at full size. */
export function partOf({ width, height, mcuWidth, mcuHeight }: McuGrid, group: number, range: GroupRange): Rect {
  const x = range.left * group * mcuWidth;
  const y = range.top * mcuHeight;
  return {
    x,
    y,
    width: Math.min(width, range.right * group * mcuWidth) - x,
    height: Math.min(height, range.bottom * mcuHeight) - y,
  };
}
