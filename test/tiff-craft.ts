/** Values of a TIFF, gray or of the four inks of CMYK. */
export interface TiffValues {
  readonly bits: number;
  /** SampleFormat: 1 for unsigned integers, 2 for signed ones, 3 for floating-point numbers. */
  readonly format: number;
  readonly values: Buffer;
  readonly isCmyk?: boolean;
}

/**
 * An uncompressed TIFF whose pixels follow its directory, so that a truncated file lacks only pixels. It has `side` times
 * `side` pixels.
 */
export function plainTiff(side: number, given: TiffValues = bytesOf200(side)): Buffer {
  const { bits, format, values, isCmyk = false } = given;
  const tags = [
    [256, 4, side],
    [257, 4, side],
    [258, 3, bits],
    [259, 3, 1],
    [262, 3, isCmyk ? 5 : 1],
    [273, 4, 0],
    [277, 3, isCmyk ? 4 : 1],
    [278, 4, side],
    [279, 4, values.length],
    [339, 3, format],
  ];
  const head = Buffer.alloc(8 + 2 + tags.length * 12 + 4);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(8, 4);
  head.writeUInt16LE(tags.length, 8);
  for (const [i, [tag, type, value]] of tags.entries()) {
    const at = 10 + 12 * i;
    head.writeUInt16LE(tag!, at);
    head.writeUInt16LE(type!, at + 2);
    head.writeUInt32LE(1, at + 4);
    head.writeUInt32LE(tag === 273 ? head.length : value!, at + 8);
  }
  return Buffer.concat([head, values]);
}

function bytesOf200(side: number): TiffValues {
  return { bits: 8, format: 1, values: Buffer.alloc(side * side, 200) };
}
