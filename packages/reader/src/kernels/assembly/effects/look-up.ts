/**
 * Bytes of RGB become 16-bit words by a `table` of 256 words for each channel: half-precision floats, which no instruction
 * makes, but of which there are only 768. From one channel of a pixel to the next are `plane` bytes of the target, from one
 * pixel to the next `step`.
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
