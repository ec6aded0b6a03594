/**
 * The strings with which timm names augmentation policies (timm 1.0, data/auto_augment.py): sections with "-" between them, of which the
 * first names the policy and the others are a letter or a word and a value, as in `rand-m9-mstd0.5-inc1`.
 */
import { didYouMean } from '@shardtool/base';
import { TIMM_PAIRS, TIMM_SETS, type TimmChoice, type TimmOperation } from './timm-policies.js';

/** How far magnitudes vary: the standard deviation of a normal distribution, or uniformly from 0 to the magnitude. */
export type MagnitudeNoise = number | 'uniform';

/** A policy that draws operations of one magnitude from a set, and applies them one after the other. */
export interface RandPolicy {
  readonly kind: 'rand';
  readonly operations: readonly TimmOperation[];
  /** Weights of the operations, which are then drawn without replacement. Null: equal weights, with replacement. */
  readonly weights: readonly number[] | null;
  /** Number of operations that are drawn. */
  readonly layers: number;
  /** Probability that a drawn operation applies. */
  readonly probability: number;
  readonly magnitude: number;
  readonly noise: MagnitudeNoise;
  /** The largest magnitude after the noise. */
  readonly limit: number;
}

/** A policy that draws one of its lists of operations. */
export interface ListedPolicy {
  readonly kind: 'listed';
  readonly lists: readonly (readonly TimmChoice[])[];
  readonly noise: MagnitudeNoise;
}

/** AugMix: chains of random operations, whose results are mixed with the image. */
export interface AugMixPolicy {
  readonly kind: 'augmix';
  readonly operations: readonly TimmOperation[];
  readonly magnitude: number;
  /** Number of chains. */
  readonly width: number;
  /** Number of operations of a chain. 0: 1 to 3, drawn for each chain. */
  readonly depth: number;
  /** Parameter of the distributions of the weights. */
  readonly alpha: number;
  /** Blends the chains into the image one after the other, instead of their mean. */
  readonly isBlended: boolean;
  readonly noise: MagnitudeNoise;
}

export type TimmPolicy = RandPolicy | ListedPolicy | AugMixPolicy;

/** A section: its meaning, and whether its value is a whole number. */
interface Section {
  readonly meaning: string;
  readonly isWhole: boolean;
  readonly least: number;
  readonly most: number;
}

const NOISE = { mstd: { meaning: 'standard deviation of the magnitude', isWhole: false, least: 0, most: 1e9 } };
const RAND_SECTIONS: Readonly<Record<string, Section>> = {
  m: { meaning: 'magnitude', isWhole: true, least: 0, most: 100 },
  n: { meaning: 'number of operations', isWhole: true, least: 1, most: 100 },
  p: { meaning: 'probability of each operation', isWhole: false, least: 0, most: 1 },
  ...NOISE,
  mmax: { meaning: 'largest magnitude', isWhole: true, least: 1, most: 100 },
  inc: { meaning: 'operations that change more with the magnitude', isWhole: true, least: 0, most: 1 },
};
const AUGMIX_SECTIONS: Readonly<Record<string, Section>> = {
  m: { meaning: 'magnitude', isWhole: true, least: 0, most: 100 },
  w: { meaning: 'number of chains', isWhole: true, least: 1, most: 16 },
  d: { meaning: 'number of operations of a chain', isWhole: true, least: 1, most: 16 },
  a: { meaning: 'parameter of the distributions of the weights', isWhole: false, least: 0.001, most: 1000 },
  b: { meaning: 'blends one chain after the other', isWhole: true, least: 0, most: 1 },
  ...NOISE,
};
const POLICY_NAMES = ['rand', 'augmix', ...Object.keys(TIMM_PAIRS)];

/** The magnitude that timm calls the largest, unless `mmax` sets another. */
const LARGEST_MAGNITUDE = 10;

/** Parses the name of a policy. A string is the reason why it is not valid: the end of a sentence. */
export function parseTimmConfig(config: string): TimmPolicy | string {
  const [name = '', ...sections] = config.split('-');
  if (!POLICY_NAMES.includes(name)) {
    return `has the unknown policy "${name}"${ended(didYouMean(name, POLICY_NAMES))} Known policies: ${POLICY_NAMES.join(', ')}`;
  }
  if (name === 'rand') return randPolicy(sections);
  const given = valuesOf(sections, name === 'augmix' ? AUGMIX_SECTIONS : NOISE, name);
  if (typeof given === 'string') return given;
  if (name !== 'augmix') return { kind: 'listed', lists: TIMM_PAIRS[name]!, noise: given.mstd ?? 0 };
  return {
    kind: 'augmix',
    operations: TIMM_SETS.augmix,
    magnitude: given.m ?? 3,
    width: given.w ?? 3,
    depth: given.d ?? 0,
    alpha: given.a ?? 1,
    isBlended: given.b === 1,
    noise: given.mstd ?? 'uniform',
  };
}

/** The sets that the section `t` names. */
const SET_NAMES = ['weights', '3a', '3aw'];

function randPolicy(sections: readonly string[]): RandPolicy | string {
  const given = valuesOf(
    sections.filter((section) => !section.startsWith('t')),
    RAND_SECTIONS,
    'rand',
  );
  if (typeof given === 'string') return given;
  const set = sections.find((section) => section.startsWith('t'))?.slice(1);
  if (set !== undefined && !SET_NAMES.includes(set)) {
    return `names the unknown set of operations "${set}"${ended(didYouMean(set, SET_NAMES))} Known sets: ${SET_NAMES.map((one) => `t${one}`).join(', ')}`;
  }
  const weighted = set === 'weights' ? TIMM_SETS.weighted : set === '3aw' ? TIMM_SETS.weighted3a : null;
  const plain = set === '3a' ? TIMM_SETS.threeA : given.inc === 1 ? TIMM_SETS.increasing : TIMM_SETS.rand;
  const operations = weighted === null ? plain : (Object.keys(weighted) as TimmOperation[]);
  const layers = given.n ?? 2;
  if (weighted !== null && layers > operations.length) {
    return `draws ${layers} operations without replacement, and t${set} has ${operations.length}: choose a smaller n`;
  }
  const noise = given.mstd ?? 0;
  return {
    kind: 'rand',
    operations,
    weights: weighted === null ? null : Object.values(weighted),
    layers,
    probability: given.p ?? 0.5,
    magnitude: given.m ?? LARGEST_MAGNITUDE,
    // In timm, a deviation above 100 means a uniform distribution.
    noise: noise > 100 ? 'uniform' : noise,
    limit: given.mmax ?? LARGEST_MAGNITUDE,
  };
}

/** The values of sections by name, or the reason why a section is not valid. */
function valuesOf(
  sections: readonly string[],
  known: Readonly<Record<string, Section>>,
  policy: string,
): Readonly<Record<string, number>> | string {
  const values: Record<string, number> = {};
  for (const text of sections) {
    const [, key = '', value = ''] = /^(\D*)(.*)$/.exec(text)!;
    const section = Object.hasOwn(known, key) ? known[key] : undefined;
    if (section === undefined) {
      const names = Object.entries(known).map(([one, { meaning }]) => `${one} (${meaning})`);
      if (policy === 'rand') names.push('t (set of operations)');
      return `has the unknown section "${text}"${ended(didYouMean(key, Object.keys(known)))} Sections of ${policy}: ${names.join(', ')}`;
    }
    if (key in values) return `has the section ${key} twice`;
    const number = value === '' ? Number.NaN : Number(value);
    const isValid = number >= section.least && number <= section.most && (!section.isWhole || Number.isInteger(number));
    if (!isValid) {
      return `has the section "${text}", whose value must be ${section.isWhole ? 'an integer' : 'a number'} from ${section.least} to ${section.most}`;
    }
    values[key] = number;
  }
  return values;
}

/** A hint, ended by a question mark or a full stop. */
function ended(hint: string): string {
  return hint === '' ? '.' : hint;
}
