/**
 * Bytes of RGB become 16-bit words [3, pixels] by a `table` of 256 words for each channel: half-precision floats, which no
 * instruction makes, but of which there are only 768.
 */
export function lookUpWords(source: usize, pixels: usize, table: usize, target: usize): void {
  const plane = pixels << 1;
  const green = table + 512;
  const blue = table + 1024;
  for (const end = target + plane; target < end; target += 2, source += 3) {
    store<u16>(target, load<u16>(table + (<usize>load<u8>(source) << 1)));
    store<u16>(target + plane, load<u16>(green + (<usize>load<u8>(source, 1) << 1)));
    store<u16>(target + plane * 2, load<u16>(blue + (<usize>load<u8>(source, 2) << 1)));
  }
}
