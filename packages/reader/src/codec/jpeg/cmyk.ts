/**
 * Converts rows of CMYK pixels to RGB in place, like Pillow's `convert('RGB')` (Convert.c, cmyk2rgb). With `adobe`, the inks are
 * inverted, as Adobe stores them in JPEGs: 255 means no ink.
 */
export function cmykToRgb(
  memory: Uint8Array,
  offset: number,
  stride: number,
  width: number,
  height: number,
  adobe: boolean,
): void {
  const invert = adobe ? 255 : 0;
  for (let y = 0; y < height; y++) {
    let from = offset + y * stride;
    let to = from;
    for (let x = 0; x < width; x++, from += 4, to += 3) {
      const light = 255 - (memory[from + 3]! ^ invert);
      memory[to] = shade(memory[from]! ^ invert, light);
      memory[to + 1] = shade(memory[from + 1]! ^ invert, light);
      memory[to + 2] = shade(memory[from + 2]! ^ invert, light);
    }
  }
}

/** Light that remains after an ink: light - ink * light / 255, rounded like Pillow's MULDIV255. */
function shade(ink: number, light: number): number {
  const product = ink * light + 128;
  return light - ((product + (product >> 8)) >> 8);
}
