/** The option `mix`: how batches are mixed. */
import { didYouMean, OptionError, optionName, sentence, withCodeNames } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { CopyPaste } from './copy-paste.js';
import { MOSAIC_PARTS, type Mosaic } from './mosaic.js';

/** Soft labels of a mix. Without `numClasses` there are none. */
interface SoftLabelsInput {
  /** Number of classes: `batch.softLabels` is then [n, numClasses]. */
  readonly numClasses?: number;
  /** Share of each label that all classes get in equal parts. Default: 0; for timmMixup 0.1, as in timm. */
  readonly labelSmoothing?: number;
}

/** Mixes each image with the one before it. `alpha` is the parameter of the Beta distribution of the weight. Default: 1, uniform. */
interface PlainMixInput extends SoftLabelsInput {
  readonly name: 'mixup' | 'cutmix';
  readonly alpha?: number;
}

/** Mixup and cutmix as timm's class Mixup: row i is mixed with row n - 1 - i. Names and defaults are those of timm. */
interface TimmMixInput extends SoftLabelsInput {
  readonly name: 'timmMixup';
  /** Parameter of mixup's Beta distribution. 0: no mixup. Default: 1. */
  readonly mixupAlpha?: number;
  /** Parameter of cutmix's Beta distribution. 0: no cutmix. Default: 0. */
  readonly cutmixAlpha?: number;
  /**
   * Range of the sides of the rectangle, as fractions of the sides of the image. Cutmix draws from it instead of using
   * a Beta distribution.
   */
  readonly cutmixMinmax?: readonly [number, number];
  /** Probability of mixing, for a batch or a row. Default: 1. */
  readonly prob?: number;
  /** Probability of cutmix, if there are both. Default: 0.5. */
  readonly switchProb?: number;
  /** Whether a batch, a pair of rows or each row draws its own mix. Default: batch. */
  readonly mode?: 'batch' | 'pair' | 'elem';
  /** The weight of cutmix is the share of the area that remains after the rectangle was clipped. Default: true. */
  readonly correctLam?: boolean;
}

/** Makes a picture of parts of four images of the batch, with their objects and masks. */
interface MosaicInput {
  readonly name: 'mosaic';
  /** Probability that a row becomes a mosaic. Default: 1. */
  readonly p?: number;
  /** Range of the point where the four images meet, as fractions of the sides. Default: [0.3, 0.7]. YOLO: [0, 1]. */
  readonly centerRange?: readonly [number, number];
  /** Smallest width and height of a box after it was clipped, in pixels. Smaller objects are dropped. Default: 1. */
  readonly minSize?: number;
  /** Smallest part of the area of a box that must remain. Objects with less are dropped. Default: 0.1. */
  readonly minVisibility?: number;
}

/** Pastes objects of the row before, with their polygons, into each row. */
interface CopyPasteInput {
  readonly name: 'copyPaste';
  /** Probability that objects are pasted into a row. Default: 0.5. */
  readonly p?: number;
  /** Probability of each object of the other row to be pasted. Default: 0.5. */
  readonly objectP?: number;
  /** Smallest width and height of the box of a partly hidden object, in pixels. Smaller objects are dropped. Default: 1. */
  readonly minSize?: number;
  /** Smallest part of the pixels of an object that must remain visible. Objects with less are dropped. Default: 0.1. */
  readonly minVisibility?: number;
}

/** Mixes that are applied one after another, each to the result of the one before: mosaic and then mixup, as YOLO does. */
interface SequenceInput {
  readonly name: 'sequence';
  /** The mixes, without `numClasses` and `labelSmoothing`: each row keeps the label of its own sample. */
  readonly mixes: readonly SingleMixInput[];
}

type SingleMixInput = PlainMixInput | TimmMixInput | MosaicInput | CopyPasteInput;

/** One way to mix the images of a batch. */
export type MixInput = SingleMixInput | SequenceInput;

const ALPHA_MAX = 1000;

const softLabels = (smoothing: number) => ({
  numClasses: z.number().int().min(1).max(1_000_000).optional(),
  labelSmoothing: z.number().min(0).max(1).default(smoothing),
});
const probability = (value: number) => z.number().min(0).max(1).default(value);
const objectRule = () => ({ minSize: z.number().min(0).default(1), minVisibility: probability(0.1) });
const fractions = () => z.tuple([z.number().min(0).max(1), z.number().min(0).max(1)]);
const schemas = {
  copyPaste: () =>
    z.strictObject({ name: z.literal('copyPaste'), p: probability(0.5), objectP: probability(0.5), ...objectRule() }),
  mosaic: () =>
    z
      .strictObject({
        name: z.literal('mosaic'),
        p: probability(1),
        centerRange: fractions().default([0.3, 0.7]),
        ...objectRule(),
      })
      .refine(({ centerRange: [low, high] }) => low <= high, {
        path: ['centerRange'],
        message: 'must have the smaller value first',
      }),
  plain: () =>
    z.strictObject({
      name: z.enum(['mixup', 'cutmix']),
      alpha: z.number().positive().max(ALPHA_MAX).default(1),
      ...softLabels(0),
    }),
  timm: () =>
    z
      .strictObject({
        name: z.literal('timmMixup'),
        mixupAlpha: z.number().min(0).max(ALPHA_MAX).default(1),
        cutmixAlpha: z.number().min(0).max(ALPHA_MAX).default(0),
        cutmixMinmax: fractions().optional(),
        prob: z.number().min(0).max(1).default(1),
        switchProb: z.number().min(0).max(1).default(0.5),
        mode: z.enum(['batch', 'pair', 'elem']).default('batch'),
        correctLam: z.boolean().default(true),
        ...softLabels(0.1),
      })
      // timm sets cutmix's alpha to 1 if there is a range.
      .transform((mix) => (mix.cutmixMinmax === undefined ? mix : { ...mix, cutmixAlpha: 1 }))
      .refine((mix) => mix.mixupAlpha > 0 || mix.cutmixAlpha > 0, {
        path: ['mixupAlpha'],
        message: 'is 0, and so is cutmixAlpha: set one of them, or cutmixMinmax',
      })
      .refine(({ cutmixMinmax: range }) => range === undefined || range[0] < range[1], {
        path: ['cutmixMinmax'],
        message: 'must have the smaller value first',
      }),
};
export type PlainMix = z.output<ReturnType<typeof schemas.plain>>;
export type TimmMix = z.output<ReturnType<typeof schemas.timm>>;
/** A mix that also mixes the labels of rows. */
export type LabelMix = PlainMix | TimmMix;
export type SingleMix = LabelMix | Mosaic | CopyPaste;
/** Mixes that are applied one after another. */
interface MixSequence {
  readonly name: 'sequence';
  readonly mixes: readonly SingleMix[];
}
type Mix = SingleMix | MixSequence;
/** The mixes of a loader. If there are several, each batch uses one of them. */
export type Mixes = readonly Mix[];

const SINGLE_NAMES = ['mixup', 'cutmix', 'timmMixup', 'mosaic', 'copyPaste'] as const;
const NAMES = [...SINGLE_NAMES, 'sequence'] as const;
const EXPECTED =
  "Expected { name: 'mixup' or 'cutmix', alpha }, { name: 'timmMixup', mixupAlpha, cutmixAlpha, cutmixMinmax, prob, switchProb, mode, correctLam }, each also with numClasses and labelSmoothing, { name: 'mosaic', p, centerRange, minSize, minVisibility }, { name: 'copyPaste', p, objectP, minSize, minVisibility }, { name: 'sequence', mixes }, or a list of these.";

/** Checks the option `mix` and fills in defaults. Throws {@link OptionError}. */
export function checkMix(input: MixInput | readonly MixInput[] | undefined): Mixes {
  if (input === undefined) return [];
  const mixes = (Array.isArray(input) ? input : [input]).map(checkOne);
  const [first] = mixes;
  if (mixes.some((mix) => classesOf(mix) !== classesOf(first!))) {
    throw new OptionError(
      {},
      sentence`The mixes of the option ${optionName('mix')} have different numClasses: set the same for all.`,
    );
  }
  return mixes;
}

/** All mixes, including those of sequences. */
export function singleMixes(mixes: Mixes): SingleMix[] {
  return mixes.flatMap(partsOf);
}

function partsOf(mix: Mix): readonly SingleMix[] {
  return mix.name === 'sequence' ? mix.mixes : [mix];
}

function classesOf(mix: Mix | undefined): number | undefined {
  return mix === undefined || !mixesLabels(mix) ? undefined : mix.numClasses;
}

/** Whether a mix combines the labels of rows, as mixup and cutmix do. Otherwise rows keep the labels of their own samples. */
export function mixesLabels(mix: Mix): mix is LabelMix {
  return mix.name !== 'mosaic' && mix.name !== 'copyPaste' && mix.name !== 'sequence';
}

/** Largest number of images whose objects one row may have. */
export function imagesPerRow(mixes: Mixes): number {
  const imagesOf = ({ name }: SingleMix) => (name === 'mosaic' ? MOSAIC_PARTS : 2);
  return Math.max(1, ...mixes.map((mix) => partsOf(mix).reduce((product, one) => product * imagesOf(one), 1)));
}

/** Number of images that are kept aside while a batch is mixed. */
export function spareImages(mixes: Mixes): number {
  return Math.max(0, ...singleMixes(mixes).map(({ name }) => (name === 'mosaic' ? MOSAIC_PARTS - 1 : 1)));
}

function checkOne(given: unknown): Mix {
  const mix = withKnownName(given);
  return nameOf(mix) === 'sequence' ? checkSequence(mix as object) : checkSingle(mix, NAMES);
}

function nameOf(mix: unknown): unknown {
  return (mix as { name?: unknown } | null)?.name;
}

function checkSingle(mix: unknown, names: readonly string[]): SingleMix {
  const name = nameOf(mix);
  if (typeof name === 'string' && !names.includes(name))
    throw invalid('name', `is ${JSON.stringify(name)}${didYouMean(name, names)}`);
  const schema =
    name === 'timmMixup'
      ? schemas.timm()
      : name === 'mosaic' || name === 'copyPaste'
        ? schemas[name]()
        : schemas.plain();
  return parseShape(schema as unknown as z.ZodType<SingleMix>, mix, ({ where, what }) => invalid(where, what));
}

/** Names of mixes and of their parameters. */
const OURS: ReadonlySet<string> = new Set(EXPECTED.match(/[a-z]+(?:[A-Z][a-z]*)+/g));

function isNameOfOurs(word: string): boolean {
  return OURS.has(word);
}

function invalid(where: string, what: string): OptionError {
  return new OptionError(
    {},
    sentence`The loader's option ${optionName('mix')} is invalid (${withCodeNames(where || 'it', isNameOfOurs)} ${withCodeNames(what, isNameOfOurs)}). ${withCodeNames(EXPECTED)}`,
  );
}

/** Checks a sequence. Rows of sequences keep their labels, because a row may have more than two images. */
function checkSequence(given: object): MixSequence {
  const schema = z.strictObject({ name: z.literal('sequence'), mixes: z.array(z.unknown()).min(1) });
  const { mixes } = parseShape(schema, given, ({ where, what }) => invalid(where, what));
  const checked = mixes.map((one) => {
    const mix = withKnownName(one);
    if (nameOf(mix) === 'sequence') throw invalid('mixes', 'of a sequence cannot be sequences');
    for (const key of ['numClasses', 'labelSmoothing']) {
      if (typeof mix === 'object' && mix !== null && key in mix)
        throw invalid(key, 'is not allowed in a sequence, whose rows keep the labels of their own samples');
    }
    return checkSingle(mix, SINGLE_NAMES);
  });
  return { name: 'sequence', mixes: checked };
}

/** The mix with the names of this file for those of Python and timm: timm_mixup, Mixup, mixup_alpha. */
function withKnownName(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given;
  const camel = (key: string) => key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const mix = Object.fromEntries(Object.entries(given).map(([key, value]) => [camel(key), value]));
  return typeof mix.name === 'string' ? { ...mix, name: camel(mix.name) } : mix;
}
