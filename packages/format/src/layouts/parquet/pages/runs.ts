/**
 * Small numbers as runs and bit-packed groups, used for levels and dictionary positions. Apache Parquet format,
 * Encodings.md, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)". Throws RangeError if `bytes` end before `count`
 * numbers.
 */
export function decodeRuns(bytes: Uint8Array, bitWidth: number, count: number): Uint32Array {
  if (bitWidth > 32) throw new RangeError('its numbers are too wide');
  // A bit-packed group of eight numbers takes bitWidth bytes, and a run is at most the rest.
  const values = new Uint32Array(count);
  let at = 0;
  let done = 0;
  while (done < count) {
    let head = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 28) throw new RangeError('its runs are cut');
      head += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const length = Math.floor(head / 2);
    if (length === 0) throw new RangeError('one of its runs has no numbers');
    if (head % 2 === 0) {
      const end = Math.min(count, done + length);
      values.fill(littleEndian(bytes, at, bitWidth), done, end);
      at += (bitWidth + 7) >> 3;
      done = end;
      continue;
    }
    const end = Math.min(count, done + 8 * length);
    if (at + Math.ceil(((end - done) * bitWidth) / 8) > bytes.length) throw new RangeError('its runs are cut');
    for (let bit = at * 8; done < end; done++, bit += bitWidth) values[done] = bitsAt(bytes, bit, bitWidth);
    at += length * bitWidth;
  }
  return values;
}

/**
 * Throws RangeError if a run is far longer than the number of values. hyparquet, which decodes pages of labels,
 * allocates as many as a run claims, so one changed bit could take all memory. Some writers pad the last run.
 */
export function refuseLongRuns(bytes: Uint8Array, bitWidth: number, count: number): void {
  const most = 2 * count + 64;
  for (let at = 0, done = 0; at < bytes.length && done < count; ) {
    let head = 0;
    for (let shift = 0, byte = 0x80; byte >= 0x80; shift += 7) {
      byte = bytes[at++] ?? 0;
      if (shift > 28) throw new RangeError('its runs are cut');
      head += (byte & 0x7f) * 2 ** shift;
    }
    const length = Math.floor(head / 2) * (head % 2 === 0 ? 1 : 8);
    if (length > most) throw new RangeError('one of its runs is longer than the number of values');
    at += head % 2 === 0 ? (bitWidth + 7) >> 3 : (length * bitWidth) / 8;
    done += length;
  }
}

function littleEndian(bytes: Uint8Array, at: number, bitWidth: number): number {
  let value = 0;
  for (let i = (bitWidth + 7) >> 3; i > 0; i--) {
    const byte = bytes[at + i - 1];
    if (byte === undefined) throw new RangeError('its runs are cut');
    value = value * 256 + byte;
  }
  return value;
}

function bitsAt(bytes: Uint8Array, bit: number, bitWidth: number): number {
  let value = 0;
  for (let got = 0; got < bitWidth; ) {
    const within = (bit + got) & 7;
    const take = Math.min(8 - within, bitWidth - got);
    value += ((bytes[(bit + got) >> 3]! >> within) & ((1 << take) - 1)) * 2 ** got;
    got += take;
  }
  return value;
}
