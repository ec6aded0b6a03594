/** What each chroma value adds to a colour, in units of 1/2^shift. The two parts of green are added before rounding. */
interface ChromaTables {
  readonly shift: number;
  readonly redOfCr: Int32Array;
  readonly greenOfCb: Int32Array;
  readonly greenOfCr: Int32Array;
  readonly blueOfCb: Int32Array;
}

function tables(
  shift: number,
  roundUp: 'each' | 'sum',
  factors: readonly [number, number, number, number],
): ChromaTables {
  const scale = 2 ** shift;
  const [red, greenOfCb, greenOfCr, blue] = factors.map((factor, i) => {
    const fixed = Math.sign(factor) * Math.floor(Math.abs(factor) * scale + 0.5);
    const half = roundUp === 'sum' && i !== 2 ? scale / 2 : 0;
    return Int32Array.from({ length: 256 }, (_, value) =>
      roundUp === 'each' ? Math.trunc(factor * scale * (value - 128) + 0.5) : fixed * (value - 128) + half,
    );
  }) as [Int32Array, Int32Array, Int32Array, Int32Array];
  return { shift, redOfCr: red, greenOfCb, greenOfCr, blueOfCb: blue };
}

/** The arithmetic of Pillow (ConvertYCbCr.c), and that of libtiff (tif_color.c), which Pillow uses for compressed values. */
const OF_PILLOW = tables(6, 'each', [1.402, -0.34414, -0.71414, 1.772]);
const OF_LIBTIFF = tables(16, 'sum', [1.402, (-1.772 * 0.114) / 0.587, (-1.402 * 0.299) / 0.587, 1.772]);

/** Converts YCbCr pixels to RGB in place, like Pillow. ITU-T T.871, section 7. */
export function ycbcrToRgb(pixels: Uint8Array, isCompressed: boolean): void {
  const { shift, redOfCr, greenOfCb, greenOfCr, blueOfCb } = isCompressed ? OF_LIBTIFF : OF_PILLOW;
  for (let at = 0; at < pixels.length; at += 3) {
    const [luma, cb, cr] = [pixels[at]!, pixels[at + 1]!, pixels[at + 2]!];
    pixels[at] = clamped(luma + (redOfCr[cr]! >> shift));
    pixels[at + 1] = clamped(luma + ((greenOfCb[cb]! + greenOfCr[cr]!) >> shift));
    pixels[at + 2] = clamped(luma + (blueOfCb[cb]! >> shift));
  }
}

function clamped(value: number): number {
  return Math.min(255, Math.max(0, value));
}
