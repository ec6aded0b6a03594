/**
 * Turns rows of four inks into RGB in place, as Pillow's `convert('RGB')` does (Convert.c, cmyk2rgb): a colour is what
 * ink and black leave of it. With `adobe`, inks are stored as Adobe does in a JPEG: 255 is none.
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

/** What an ink leaves of the light: light - ink * light / 255, rounded as Pillow's MULDIV255 does. */
function shade(ink: number, light: number): number {
  const product = ink * light + 128;
  return light - ((product + (product >> 8)) >> 8);
}
