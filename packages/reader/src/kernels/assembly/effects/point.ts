// Changes of single bytes, in place. Each writes up to 15 bytes past the end.

/** Replaces every byte by 255 - byte. */
export function invertBytes(address: usize, bytes: usize): void {
  for (const end = address + bytes; address < end; address += 16) v128.store(address, v128.not(v128.load(address)));
}

/** Keeps the bits of `mask` of every byte. */
export function maskBytes(address: usize, bytes: usize, mask: i32): void {
  const masks = i8x16.splat(<i8>mask);
  for (const end = address + bytes; address < end; address += 16) {
    v128.store(address, v128.and(v128.load(address), masks));
  }
}

/** Inverts every byte of at least `threshold`, 0 to 255. */
export function solarizeBytes(address: usize, bytes: usize, threshold: i32): void {
  const thresholds = i8x16.splat(<i8>threshold);
  for (const end = address + bytes; address < end; address += 16) {
    const values = v128.load(address);
    v128.store(address, v128.xor(values, i8x16.ge_u(values, thresholds)));
  }
}

/** Counts the values of each channel in `counts`, 3 x 256 words of 32 bits, which must be zero before. */
export function countBytes(address: usize, pixels: usize, counts: usize): void {
  for (const end = address + pixels * 3; address < end; address += 3) {
    countOne(counts, load<u8>(address));
    countOne(counts + 1024, load<u8>(address, 1));
    countOne(counts + 2048, load<u8>(address, 2));
  }
}

@inline function countOne(counts: usize, value: u32): void {
  const at = counts + (<usize>value << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/** Replaces every byte by its entry in `table`, 3 x 256 bytes: one table for each channel. */
export function lookUpBytes(address: usize, pixels: usize, table: usize): void {
  for (const end = address + pixels * 3; address < end; address += 3) {
    store<u8>(address, load<u8>(table + <usize>load<u8>(address)));
    store<u8>(address, load<u8>(table + <usize>load<u8>(address, 1), 256), 1);
    store<u8>(address, load<u8>(table + <usize>load<u8>(address, 2), 512), 2);
  }
}

/** Moves the channels of every pixel: the channel c of the result is the channel number c of `red`, `green`, `blue`, 0 to 2. */
export function permuteChannels(address: usize, pixels: usize, red: i32, green: i32, blue: i32): void {
  for (const end = address + pixels * 3; address < end; address += 3) {
    const pixel = <u32>load<u16>(address) | (<u32>load<u8>(address, 2) << 16);
    store<u8>(address, pixel >> (red << 3));
    store<u8>(address, pixel >> (green << 3), 1);
    store<u8>(address, pixel >> (blue << 3), 2);
  }
}
