/** The measures of the samples of a shard or a dataset: one column per measure, and how each column is stored. */

import { range } from '@shardtool/base';
import type { ColumnType, ColumnValue, InspectionColumn } from '@shardtool/format';
import { INSPECT_PREFIX } from '../dataset/inspection-columns.js';
import type { Measured } from './measure.js';

/** The measures of `samples` samples, about 50 bytes each. If `isMeasured` is 0, the sample has no image or a bad one. */
export class Measures {
  readonly isMeasured: Uint8Array;
  readonly crc32: Uint32Array;
  readonly bytes: Float64Array;
  /** Perceptual hashes, two words each. */
  readonly hash: Uint32Array;
  /** Perceptual hashes without margins, two words each. */
  readonly innerHash: Uint32Array;
  readonly brightness: Float32Array;
  readonly p5: Uint8Array;
  readonly p99: Uint8Array;
  readonly entropy: Float32Array;
  readonly sharpness: Float32Array;
  /** Longer side divided by the shorter. 0 if the size is unknown. */
  readonly aspect: Float32Array;
  readonly warnings: Uint8Array;
  /** The reasons why samples have no measures, by row. */
  readonly errors = new Map<number, string>();
  /** Per channel the sum of the mean values of images, then per channel the sum of their mean squared values, then the number of images. */
  readonly totals: Float64Array = new Float64Array(7);

  constructor(readonly samples: number) {
    this.isMeasured = new Uint8Array(samples);
    this.crc32 = new Uint32Array(samples);
    this.bytes = new Float64Array(samples);
    this.hash = new Uint32Array(2 * samples);
    this.innerHash = new Uint32Array(2 * samples);
    this.brightness = new Float32Array(samples);
    this.p5 = new Uint8Array(samples);
    this.p99 = new Uint8Array(samples);
    this.entropy = new Float32Array(samples);
    this.sharpness = new Float32Array(samples);
    this.aspect = new Float32Array(samples);
    this.warnings = new Uint8Array(samples);
  }

  /** Sets the measures of a row. `pixels` is the number of pixels in the sums. */
  put(row: number, measured: Measured, pixels: number): void {
    this.isMeasured[row] = 1;
    this.crc32[row] = measured.crc32;
    this.bytes[row] = measured.bytes;
    this.hash.set(measured.hash, 2 * row);
    this.innerHash.set(measured.innerHash, 2 * row);
    this.brightness[row] = measured.brightness;
    this.p5[row] = measured.p5;
    this.p99[row] = measured.p99;
    this.entropy[row] = measured.entropy;
    this.sharpness[row] = measured.sharpness;
    this.warnings[row] = Math.min(255, measured.warnings);
    for (let channel = 0; channel < 3; channel++) {
      this.totals[channel]! += measured.sums[channel]! / pixels;
      this.totals[3 + channel]! += measured.squares[channel]! / pixels;
    }
    this.totals[6]!++;
  }

  /** Copies the measures of a shard, whose first sample has the index `first`. */
  putShard(first: number, shard: Measures): void {
    for (const name of LISTS) this[name].set(shard[name] as never, first);
    for (const name of ['hash', 'innerHash'] as const) this[name].set(shard[name], 2 * first);
    for (const [row, error] of shard.errors) this.errors.set(first + row, error);
    for (let i = 0; i < this.totals.length; i++) this.totals[i]! += shard.totals[i]!;
  }
}

/** The lists with one value per sample. */
const LISTS = [
  ...(['isMeasured', 'crc32', 'bytes', 'brightness', 'p5', 'p99'] as const),
  ...(['entropy', 'sharpness', 'aspect', 'warnings'] as const),
] as const;

/** A stored measure: the type of its column, and how to read and write a row in {@link Measures}. */
interface StoredMeasure {
  readonly type: ColumnType;
  get(from: Measures, row: number): ColumnValue;
  set(to: Measures, row: number, value: NonNullable<ColumnValue>): void;
}

const plain = (name: (typeof LISTS)[number], type: 'int' | 'double'): StoredMeasure => ({
  type,
  get: (from, row) => from[name][row]!,
  set: (to, row, value) => {
    to[name][row] = value as number;
  },
});
const hashed = (name: 'hash' | 'innerHash'): StoredMeasure => ({
  type: 'string',
  get: (from, row) => hashText(from[name], row),
  set: (to, row, value) => {
    const text = value as string;
    to[name][2 * row] = Number.parseInt(text.slice(8), 16);
    to[name][2 * row + 1] = Number.parseInt(text.slice(0, 8), 16);
  },
});

/** The stored columns. A value is null if the sample has no measures. */
const STORED: Readonly<Record<string, StoredMeasure>> = {
  hash: hashed('hash'),
  innerHash: hashed('innerHash'),
  crc32: plain('crc32', 'int'),
  bytes: plain('bytes', 'int'),
  brightness: plain('brightness', 'double'),
  p5: plain('p5', 'int'),
  p99: plain('p99', 'int'),
  entropy: plain('entropy', 'double'),
  sharpness: plain('sharpness', 'double'),
  aspect: plain('aspect', 'double'),
  warnings: plain('warnings', 'int'),
};
const ERROR = 'error';

/** A hash as 16 hexadecimal digits. */
export function hashText(hashes: Uint32Array, row: number): string {
  const digits = (word: number) => word.toString(16).padStart(8, '0');
  return digits(hashes[2 * row + 1]!) + digits(hashes[2 * row]!);
}

/** The columns of the inspection sidecar. */
export function columnsOf(measures: Measures): Map<string, InspectionColumn> {
  const rows = range(measures.samples);
  const columns = new Map<string, InspectionColumn>();
  for (const [name, { type, get }] of Object.entries(STORED)) {
    const values = rows.map((row) => (measures.isMeasured[row] === 1 ? get(measures, row) : null));
    columns.set(INSPECT_PREFIX + name, { type, values });
  }
  columns.set(INSPECT_PREFIX + ERROR, { type: 'string', values: rows.map((row) => measures.errors.get(row) ?? null) });
  return columns;
}

/** The inverse of {@link columnsOf}. Null if a column is missing. */
export function measuresOf(
  samples: number,
  columns: ReadonlyMap<string, InspectionColumn>,
  totals: readonly number[],
): Measures | null {
  const measures = new Measures(samples);
  const valuesOf = (name: string) => columns.get(INSPECT_PREFIX + name)?.values;
  for (const [name, { set }] of Object.entries(STORED)) {
    const values = valuesOf(name);
    if (values === undefined || values.length !== samples) return null;
    values.forEach((value, row) => {
      if (value === null) return;
      set(measures, row, value);
      measures.isMeasured[row] = 1;
    });
  }
  valuesOf(ERROR)?.forEach((value, row) => {
    if (value !== null) measures.errors.set(row, String(value));
  });
  measures.totals.set(totals);
  return measures;
}
