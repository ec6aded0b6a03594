import type { Size } from './codec.js';

/** The luma of a colour, rounded like Pillow's `convert('L')` (Convert.c, L24). Works for 8 and 16 bits. */
export function luma(red: number, green: number, blue: number): number {
  return Math.floor((red * 19_595 + green * 38_470 + blue * 7471 + 0x8000) / 65_536);
}

/** Converts rows of RGB bytes in place: to one channel of luma, or to RGB with an opaque alpha. Rows must have room for the result. */
export function fromRgb(
  memory: Uint8Array,
  offset: number,
  stride: number,
  { width, height }: Size,
  channels: 1 | 4,
): void {
  for (let y = 0; y < height; y++) {
    const row = offset + y * stride;
    if (channels === 1) {
      for (let x = 0, from = row; x < width; x++, from += 3)
        memory[row + x] = luma(memory[from]!, memory[from + 1]!, memory[from + 2]!);
      continue;
    }
    for (let x = width - 1; x >= 0; x--) {
      const from = row + 3 * x;
      const to = row + 4 * x;
      const [red, green, blue] = [memory[from]!, memory[from + 1]!, memory[from + 2]!];
      memory[to] = red;
      memory[to + 1] = green;
      memory[to + 2] = blue;
      memory[to + 3] = 255;
    }
  }
}
