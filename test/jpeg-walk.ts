/** A plain walk of a baseline JPEG, bit by bit (ITU-T T.81, annex F.2), to check faster ones against. */
export interface JpegWalk {
  readonly mcusX: number;
  readonly mcusY: number;
  /**
   * For each MCU, and one more for the end: where the previous MCU ends in the scan's data, in bits with stuffed zeros, and the
   * DC of each component there.
   */
  readonly entries: readonly (readonly number[])[];
}

interface Component {
  readonly id: number;
  readonly h: number;
  readonly v: number;
  dc: Codes;
  ac: Codes;
}

/** Symbols by length and code: `5:17`. */
type Codes = ReadonlyMap<string, number>;

export function walkJpeg(bytes: Uint8Array): JpegWalk {
  const { width, height, components, interval, scan } = readHeader(bytes);
  const single = components.length === 1;
  const largest = (factor: 'h' | 'v'): number => (single ? 1 : Math.max(...components.map((one) => one[factor])));
  const mcusX = Math.ceil(width / (8 * largest('h')));
  const mcusY = Math.ceil(height / (8 * largest('v')));
  let at = scan;
  let bit = 0;
  const step = (): void => {
    at += bytes[at] === 0xff ? 2 : 1;
    bit = 0;
  };
  const bits = (count: number): number => {
    let value = 0;
    for (let i = 0; i < count; i++) {
      value = value * 2 + ((bytes[at]! >> (7 - bit)) & 1);
      if (++bit === 8) step();
    }
    return value;
  };
  const symbol = (codes: Codes): number => {
    let code = 0;
    for (let length = 1; length <= 16; length++) {
      code = code * 2 + bits(1);
      const found = codes.get(`${length}:${code}`);
      if (found !== undefined) return found;
    }
    throw new Error('no code');
  };
  const dcs = components.map(() => 0);
  const entries: number[][] = [];
  const keep = (): number => entries.push([(at - scan) * 8 + bit, ...dcs]);
  for (let mcu = 0; mcu < mcusX * mcusY; mcu++) {
    keep();
    if (interval > 0 && mcu > 0 && mcu % interval === 0) {
      if (bit > 0) step();
      at += 2;
      dcs.fill(0);
    }
    for (const [c, { h, v, dc, ac }] of components.entries()) {
      for (let block = 0; block < (single ? 1 : h * v); block++) {
        const size = symbol(dc);
        const value = bits(size);
        dcs[c] = dcs[c]! + (size > 0 && value < 2 ** (size - 1) ? value - 2 ** size + 1 : value);
        for (let k = 1; k < 64; k++) {
          const run = symbol(ac);
          if (run === 0) break;
          k += run >> 4;
          bits(run & 15);
        }
      }
    }
  }
  keep();
  return { mcusX, mcusY, entries };
}

function readHeader(bytes: Uint8Array) {
  const word = (at: number): number => bytes[at]! * 256 + bytes[at + 1]!;
  const tables = new Map<number, Codes>();
  let [width, height, interval] = [0, 0, 0];
  let components: Component[] = [];
  for (let at = 2; ; ) {
    const marker = bytes[at + 1];
    const segment = at + 4;
    const next = at + 2 + word(at + 2);
    if (marker === 0xc4) {
      for (let p = segment; p < next; ) p = readCodes(bytes, p, tables);
    } else if (marker === 0xc0 || marker === 0xc1) {
      [height, width] = [word(segment + 1), word(segment + 3)];
      components = Array.from({ length: bytes[segment + 5]! }, (_, i) => {
        const part = segment + 6 + 3 * i;
        const none: Codes = new Map();
        return { id: bytes[part]!, h: bytes[part + 1]! >> 4, v: bytes[part + 1]! & 15, dc: none, ac: none };
      });
    } else if (marker === 0xdd) interval = word(segment);
    else if (marker === 0xda) {
      for (const [i, component] of components.entries()) {
        const choice = bytes[segment + 2 + 2 * i]!;
        component.dc = tables.get(choice >> 4)!;
        component.ac = tables.get(16 + (choice & 15))!;
      }
      return { width, height, components, interval, scan: next };
    }
    at = next;
  }
}

function readCodes(bytes: Uint8Array, at: number, tables: Map<number, Codes>): number {
  const codes = new Map<string, number>();
  let code = 0;
  let next = at + 17;
  for (let length = 1; length <= 16; length++, code *= 2) {
    for (let i = 0; i < bytes[at + length]!; i++) codes.set(`${length}:${code++}`, bytes[next++]!);
  }
  tables.set(bytes[at]!, codes);
  return next;
}
