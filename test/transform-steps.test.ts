import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Effect } from '#reader/transform/effects';
import type { StepInput } from '#reader/transform/transform';
import type { Picture } from './kernels-memory.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';
import { TransformBench } from './transform-memory.js';

interface Stored {
  readonly offset: number;
  readonly bytes: number;
}

/** A case of fixtures/transforms/steps.py. */
interface Case {
  readonly kind: string;
  readonly list?: readonly StepInput[];
  readonly effects?: readonly Effect[];
  /** The random numbers of the list. */
  readonly draws?: readonly number[];
  /** The seed of the random numbers of the list, instead. */
  readonly seed?: number;
  readonly levels: number;
  readonly mean: number;
  /** The share of values that may differ more. */
  readonly except?: number;
  readonly result: Stored & { readonly width: number; readonly height: number };
}

interface Source extends Stored {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly cases: readonly Case[];
}

const fixtures = new URL('fixtures/transforms/', import.meta.url);
const FILES = ['steps', 'recipes'].map((name) => {
  const sources: Source[] = JSON.parse(readFileSync(new URL(`${name}.json`, fixtures), 'utf8'));
  const stored = gunzipSync(readFileSync(new URL(`${name}.bin.gz`, fixtures)));
  const bytesOf = ({ offset, bytes }: Stored) => new Uint8Array(stored.subarray(offset, offset + bytes));
  return { sources, bytesOf };
});
const bench = new TransformBench();
const KINDS = FILES.flatMap(({ sources, bytesOf }) => {
  const kinds = new Set(sources.flatMap(({ cases }) => cases.map(({ kind }) => kind)));
  return [...kinds].map((kind) => ({ kind, sources, bytesOf }));
});

test.each(KINDS)('$kind give the same pixels as Pillow, torchvision or timm', ({ kind, sources, bytesOf }) => {
  for (const source of sources) {
    const picture: Picture = { ...source, pixels: bytesOf(source) };
    for (const one of source.cases.filter((other) => other.kind === kind)) {
      const name = `${source.name}: ${JSON.stringify(one)}`;
      const { width, height, bytes } = run(picture, one);
      expect({ width, height }, name).toEqual({ width: one.result.width, height: one.result.height });
      const expected = bytesOf(one.result);
      const differences = Array.from(bytes, (value, i) => Math.abs(value - expected[i]!)).sort((a, b) => b - a);
      expect(differences[Math.floor(differences.length * (one.except ?? 0))], name).toBeLessThanOrEqual(one.levels);
      expect(differences.reduce((sum, value) => sum + value, 0) / differences.length, name).toBeLessThanOrEqual(
        one.mean,
      );
    }
  }
});

test('a policy solarizes from the float32 value of its threshold, as torchvision does', () => {
  const picture = { width: 2, height: 1, pixels: Uint8Array.of(169, 170, 171, 0, 255, 170) };
  // The second operation of this pair solarizes at bin 3 of 10: from two thirds of 255 on.
  const pair = 10.5 / 25;
  const draws = [pair, 1, 0, 0.25, 0.25];
  const { bytes } = bench.list(picture, [{ name: 'autoAugment', policy: 'svhn' }], { next: () => draws.shift()! });
  expect([...bytes]).toEqual([169, 85, 84, 0, 0, 85]);
});

test('areas of one value keep it in a bicubic rotation, at any subpixel position', () => {
  const size = { width: 40, height: 30 };
  const pixels = Uint8Array.from({ length: 3600 }, (_, i) => [255, 1, 128][i % 3]!);
  for (let i = 0; i < 40; i++) {
    const matrix = [1, i / 997, i / 41, -i / 911, 1, i / 37] as const;
    const rotate = {
      kind: 'rotate',
      matrix,
      size,
      interpolation: 'bicubic',
      fill: [255, 1, 128],
      maskFill: 0,
    } as const;
    expect(bench.effects({ ...size, pixels }, [rotate]).pixels).toEqual(pixels);
  }
});

test('any list of these steps works for any image size, and writes nothing outside its result', () => {
  const random = randomOf('lists of steps');
  const filters = ['nearest', 'nearest-exact', 'box', 'hamming', 'bicubic', 'lanczos'] as const;
  const steps: readonly StepInput[] = [
    { name: 'randAugment', numOps: 4, magnitude: 30 },
    { name: 'randAugment', interpolation: 'bicubic', fill: 7 },
    { name: 'trivialAugmentWide', interpolation: 'bilinear' },
    { name: 'autoAugment', policy: 'svhn' },
    { name: 'augMix' },
    { name: 'randomAffine', degrees: 90, translate: [0.5, 0.5], scale: [0.2, 3], shear: 40, interpolation: 'bilinear' },
    { name: 'randomPerspective', distortionScale: 1 },
    { name: 'randomRotate90' },
    { name: 'hsvJitter', hgain: 1, sgain: 1, vgain: 1 },
    { name: 'gaussianNoise', mean: -0.1, sigma: 2 },
    { name: 'jpeg', quality: [1, 100] },
    { name: 'randomPhotometricDistort' },
    { name: 'randomShortestSize', minSize: [3, 40], maxSize: 60 },
    { name: 'pad', padding: [5, 40], paddingMode: 'reflect' },
    { name: 'randomCrop', size: 30, padIfNeeded: true, paddingMode: 'symmetric' },
    { name: 'resizeKeepRatio', size: 30, longest: 1, randomAspectProb: 1 },
    { name: 'timmAugment', config: 'rand-m9-mstd0.5-inc1' },
    { name: 'timmAugment', config: 'augmix-m9-w4' },
    { name: 'randomAdjustSharpness', sharpnessFactor: 3 },
    { name: 'randomRotation', degrees: 200, interpolation: 'bicubic' },
    { name: 'resize', size: [7, 90], interpolation: filters },
    { name: 'resize', size: [50, 3], antialias: false, interpolation: 'random' },
    { name: 'randomResizedCrop', size: [33, 65], interpolation: 'lanczos', p: 0.5 },
    { name: 'randomChoice', transforms: [[], { name: 'centerCrop', size: 9 }] },
    {
      name: 'randomOrder',
      transforms: [{ name: 'randomInvert' }, [{ name: 'threeAugment' }, { name: 'randomVerticalFlip' }]],
    },
  ];
  const sizes = [
    [1, 1],
    [1, 300],
    [300, 1],
    [2, 3],
    [1500, 3],
    [3, 1500],
    [17, 16],
  ] as const;
  for (const [width, height] of sizes) {
    for (let i = 0; i < 20 * TIMES; i++) {
      const list = Array.from(
        { length: 1 + Math.floor(random() * 4) },
        () => steps[Math.floor(random() * steps.length)]!,
      );
      const pixels = Uint8Array.from({ length: width * height * 3 }, () => random() * 256);
      const result = bench.list({ width, height, pixels }, list, { next: random });
      expect(result.bytes.length, JSON.stringify(list)).toBe(result.width * result.height * 3);
    }
  }
});

function run(
  picture: Picture,
  { list, effects, seed, draws = seed === undefined ? [0.25] : numbersOf(seed) }: Case,
): { width: number; height: number; bytes: Uint8Array } {
  let drawn = 0;
  if (list !== undefined) return bench.list(picture, list, { next: () => draws[drawn++ % draws.length]! });
  const { pixels, ...size } = bench.effects(picture, effects!);
  return { ...size, bytes: pixels };
}

/** The random numbers of a case, as fixtures/transforms/recipes.py makes them. */
function numbersOf(seed: number): number[] {
  return Array.from({ length: 256 }, (_, i) => {
    let mix = seed * 256 + i;
    mix = Math.imul(mix ^ (mix >>> 16), 0x7feb352d);
    mix = Math.imul(mix ^ (mix >>> 15), 0x846ca68b);
    return ((mix ^ (mix >>> 16)) >>> 0) / 2 ** 32;
  });
}
