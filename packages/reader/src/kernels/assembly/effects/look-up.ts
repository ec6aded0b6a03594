/**
 * Converts RGB bytes to 16-bit words with a `table` of 256 words per channel. This makes half-precision floats, for which there is no
 * instruction, but only 768 different values. In the target, the channels of a pixel are `plane` bytes apart and pixels are `step`
 * bytes apart.
 */
export function lookUpWords(source: usize, pixels: usize, table: usize, target: usize, plane: usize, step: usize): void {
  const green = table + 512;
  const blue = table + 1024;
  for (const end = source + pixels * 3; source < end; target += step, source += 3) {
    store<u16>(target, load<u16>(table + (<usize>load<u8>(source) << 1)));
    store<u16>(target + plane, load<u16>(green + (<usize>load<u8>(source, 1) << 1)));
    store<u16>(target + plane * 2, load<u16>(blue + (<usize>load<u8>(source, 2) << 1)));
  }
}
