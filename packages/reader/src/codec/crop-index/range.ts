import type { GroupRange, McuGrid } from '../../kernels/crop-index.js';
import type { Rect, Reduction } from '../codec.js';

/** Width of a group in pixels: wider ones make the index smaller, and crops larger than they need be. */
const GROUP_PIXELS = 64;

/** MCUs of a group. */
export function groupOf({ mcuWidth }: Pick<McuGrid, 'mcuWidth'>): number {
  return Math.max(1, Math.floor(GROUP_PIXELS / mcuWidth));
}

/**
 * What of an image has to be decoded for `crop`, a part of it at 1 / `reduction` of its size. Chroma is interpolated from its
 * neighbours after it was reduced, so a component that has fewer samples takes a margin of one pixel of the reduced image.
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
  // Chroma of at most 2 columns is not interpolated: a part must not have so few where the image has more.
  const fewest = (mcuWidth / 4) * reduction;
  while (Math.min(width, right * unit) - left * unit <= fewest) {
    if (right < groups) right++;
    else if (left > 0) left--;
    else break;
  }
  return { left, right, top, bottom: Math.min(bottom, mcusY) };
}

/** The part of the image that a range is, at full size. */
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
