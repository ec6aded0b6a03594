/** Kinds of findings about single samples: one entry each, with its criterion and its ranking. */
import type { Measures } from './measures.js';

export interface FindingKind {
  /** Title of the finding, for people. */
  readonly title: string;
  /** The criterion, for people. */
  readonly help: string;
  /** The column by which samples are ranked, without its prefix. */
  readonly column: string;
  /** Whether larger values come first. */
  readonly isLargestFirst: boolean;
  value(measures: Measures, row: number): number;
  /** Whether a sample with this value belongs to the finding. */
  holds(value: number): boolean;
}

/** Thresholds. Brightness is 0 to 255, entropy 0 to 8 bits. */
const DARK_P99 = 80;
const BRIGHT_P5 = 235;
const LOW_ENTROPY = 3;
const LOW_SHARPNESS = 40;
const ODD_ASPECT = 3;

export const FINDINGS = {
  dark: {
    title: 'dark',
    help: `99 % of the pixels have a brightness of at most ${DARK_P99} of 255`,
    column: 'p99',
    isLargestFirst: false,
    value: ({ p99 }, row) => p99[row]!,
    holds: (value) => value <= DARK_P99,
  },
  bright: {
    title: 'bright',
    help: `95 % of the pixels have a brightness above ${BRIGHT_P5} of 255`,
    column: 'p5',
    isLargestFirst: true,
    value: ({ p5 }, row) => p5[row]!,
    holds: (value) => value > BRIGHT_P5,
  },
  'low-information': {
    title: 'low information',
    help: `the entropy of the brightness is below ${LOW_ENTROPY} of 8 bits: almost a single colour`,
    column: 'entropy',
    isLargestFirst: false,
    value: ({ entropy }, row) => entropy[row]!,
    holds: (value) => value < LOW_ENTROPY,
  },
  blurry: {
    title: 'blurry',
    help: `the variance of the Laplacian at 256x256 is below ${LOW_SHARPNESS}: the image has no sharp edges`,
    column: 'sharpness',
    isLargestFirst: false,
    value: ({ sharpness }, row) => sharpness[row]!,
    holds: (value) => value < LOW_SHARPNESS,
  },
  'odd-aspect': {
    title: 'odd aspect',
    help: `the longer side is more than ${ODD_ASPECT} times the shorter`,
    column: 'aspect',
    isLargestFirst: true,
    value: ({ aspect }, row) => aspect[row]!,
    holds: (value) => value > ODD_ASPECT,
  },
  warnings: {
    title: 'with warnings',
    help: 'the decoder reported a warning and continued: part of the image may be grey',
    column: 'warnings',
    isLargestFirst: true,
    value: ({ warnings }, row) => warnings[row]!,
    holds: (value) => value > 0,
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingName = keyof typeof FINDINGS;

/** The number of samples of a finding, and the indices and values of the first `most` samples by rank. */
export function findingOf(
  name: FindingName,
  measures: Measures,
  most: number,
): { readonly count: number; readonly rows: readonly number[]; readonly values: readonly number[] } {
  const kind: FindingKind = FINDINGS[name];
  const found: number[] = [];
  for (let row = 0; row < measures.samples; row++) {
    if (measures.isMeasured[row] === 1 && kind.holds(kind.value(measures, row))) found.push(row);
  }
  const sign = kind.isLargestFirst ? -1 : 1;
  const rows = Uint32Array.from(found)
    .sort((a, b) => sign * (kind.value(measures, a) - kind.value(measures, b)) || a - b)
    .subarray(0, most);
  return { count: found.length, rows: [...rows], values: Array.from(rows, (row) => kind.value(measures, row)) };
}

/** Whether the perceptual hash of an image is meaningful. Images of almost a single colour have random hashes. */
export function hasUsefulHash({ isMeasured, entropy, sharpness }: Measures, row: number): boolean {
  return isMeasured[row] === 1 && entropy[row]! >= 1 && sharpness[row]! > 0;
}
