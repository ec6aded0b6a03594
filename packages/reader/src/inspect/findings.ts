/** What an inspection says of single samples: one entry each, with what makes a sample one of them and which comes first. */
import type { Measures } from './measures.js';

export interface FindingKind {
  /** What a person is told: of `value`, and of the samples. */
  readonly title: string;
  readonly help: string;
  /** The column that the samples are ranked by, without its prefix. */
  readonly column: string;
  /** Whether larger values come first. */
  readonly isLargestFirst: boolean;
  value(measures: Measures, row: number): number;
  /** Whether this value is one of it. */
  holds(value: number): boolean;
}

/** Where what is usual ends. Light is 0 to 255, entropy 0 to 8 bits. */
const DARK_P99 = 80;
const BRIGHT_P5 = 235;
const LOW_ENTROPY = 3;
const LOW_SHARPNESS = 40;
const ODD_ASPECT = 3;

export const FINDINGS = {
  dark: {
    title: 'dark',
    help: `99 of 100 pixels are no lighter than ${DARK_P99} of 255`,
    column: 'p99',
    isLargestFirst: false,
    value: ({ p99 }, row) => p99[row]!,
    holds: (value) => value <= DARK_P99,
  },
  bright: {
    title: 'bright',
    help: `95 of 100 pixels are lighter than ${BRIGHT_P5} of 255`,
    column: 'p5',
    isLargestFirst: true,
    value: ({ p5 }, row) => p5[row]!,
    holds: (value) => value > BRIGHT_P5,
  },
  'low-information': {
    title: 'low information',
    help: `the entropy of the light is below ${LOW_ENTROPY} of 8 bits: hardly more than one colour`,
    column: 'entropy',
    isLargestFirst: false,
    value: ({ entropy }, row) => entropy[row]!,
    holds: (value) => value < LOW_ENTROPY,
  },
  blurry: {
    title: 'blurry',
    help: `the variance of the Laplacian at 256x256 is below ${LOW_SHARPNESS}: no edge is sharp, or there is none`,
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
    help: 'the codec found something odd in the file and went on: part of the picture may be grey',
    column: 'warnings',
    isLargestFirst: true,
    value: ({ warnings }, row) => warnings[row]!,
    holds: (value) => value > 0,
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingName = keyof typeof FINDINGS;

/** How many samples a finding is of, and the numbers of the first by rank, at most `most`. */
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

/** Images of hardly more than one colour have hashes of chance: they are near nothing. */
export function hasUsefulHash({ isMeasured, entropy, sharpness }: Measures, row: number): boolean {
  return isMeasured[row] === 1 && entropy[row]! >= 1 && sharpness[row]! > 0;
}
