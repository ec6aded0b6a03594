/** Values of a gray TIFF. Default: 8-bit values of 200. */
export interface TiffValues {
  readonly bits: number;
  /** SampleFormat: 1 for unsigned integers, 2 for signed ones, 3 for floating-point numbers. */
  readonly format: number;
  readonly values: Buffer;
}

/**
 * An uncompressed gray TIFF whose pixels follow its directory, so that a truncated file lacks only pixels.
 * `values` has `side` times `side` of them.
 */
export function plainTiff(side: number, given?: TiffValues): Buffer {
  const { bits, format, values } = given ?? { bits: 8, format: 1, values: Buffer.alloc(side * side, 200) };
  const tags = [
    [256, 4, side],
    [257, 4, side],
    [258, 3, bits],
    [259, 3, 1],
    [262, 3, 1],
    [273, 4, 0],
    [277, 3, 1],
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
