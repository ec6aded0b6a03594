import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { transformMask } from '#reader/decode/transform-mask';
import type { Effect, Rgb } from '#reader/transform/effects';
import { planSample } from '#reader/transform/plan';
import { rotatedSize, rotationOf } from '#reader/transform/rotation';
import { compileTransform, type StepInput } from '#reader/transform/transform';
import { floatOfHalf } from './half-floats.js';
import type { Picture } from './kernels-memory.js';
import { TransformBench } from './transform-memory.js';

/** The cases that fixtures/transforms/make.py writes. */
interface Kept {
  readonly offset: number;
  readonly bytes: number;
}

interface Case {
  readonly kind: string;
  readonly result: Kept & { readonly width: number; readonly height: number };
  readonly degrees: number;
  readonly interpolation: 'nearest' | 'bilinear';
  readonly expand: boolean;
  readonly center: readonly [number, number] | null;
  readonly fill: number | Rgb;
  readonly kernel: readonly [number, number];
  readonly sigma: number;
  readonly factor: number;
  readonly turn: number;
  /** For a jitter: names of changes, and their factor or angle. */
  readonly changes: readonly (readonly [kind: string, value: number])[];
  readonly [erased: string]: unknown;
}

interface Source extends Kept {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly cases: readonly Case[];
  readonly lists: readonly (Kept & { readonly name: string; readonly mask: Kept })[];
}

const fixtures = new URL('fixtures/transforms/', import.meta.url);
const sources: Source[] = JSON.parse(readFileSync(new URL('torchvision.json', fixtures), 'utf8'));
const kept = gunzipSync(readFileSync(new URL('torchvision.bin.gz', fixtures)));
const bytesOf = ({ offset, bytes }: Kept) => new Uint8Array(kept.subarray(offset, offset + bytes));
const pictureOf = (source: Source): Picture => ({ ...source, pixels: bytesOf(source) });
const bench = new TransformBench();

/** The maximum and mean difference that is allowed, in levels. */
const TOLERANCES: Readonly<Record<string, { largest: number; mean: number }>> = {
  rotate: { largest: 1, mean: 0.02 },
  blur: { largest: 1, mean: 0.01 },
  brightness: { largest: 1, mean: 0.01 },
  contrast: { largest: 1, mean: 0.03 },
  saturation: { largest: 1, mean: 0.03 },
  hue: { largest: 1, mean: 0.03 },
  grayscale: { largest: 1, mean: 0.03 },
  jitter: { largest: 4, mean: 0.03 },
  erase: { largest: 0, mean: 0 },
};

for (const [kind, tolerance] of Object.entries(TOLERANCES)) {
  test(`${kind} differs from torchvision v2 by at most ${tolerance.largest} level, and by ${tolerance.mean} on average`, () => {
    for (const source of sources) {
      const picture = pictureOf(source);
      for (const one of source.cases.filter((other) => other.kind === kind)) {
        const { width, height, pixels } = bench.effects(picture, effectsOf(one, source));
        const name = `${source.name}: ${JSON.stringify(one)}`;
        expect({ width, height }, name).toEqual({ width: one.result.width, height: one.result.height });
        const expected = bytesOf(one.result);
        const differences = differencesOf(everyFourthRow(pixels, width, height), expected);
        if (one.interpolation === 'nearest') {
          // If a position is exactly between two pixels, either may be the nearest.
          expect(part(differences, 0.002), name).toBe(0);
        } else {
          expect(part(differences, 0), name).toBeLessThanOrEqual(tolerance.largest);
          expect(mean(differences), name).toBeLessThanOrEqual(tolerance.mean);
        }
      }
    }
  });
}

const normalize: StepInput = { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
const classical: readonly StepInput[] = [
  { name: 'resize', size: 40 },
  { name: 'centerCrop', size: 36 },
  { name: 'randomHorizontalFlip', p: 1 },
  { name: 'randomRotation', degrees: [12, 12] },
  { name: 'gaussianBlur', kernelSize: 5, sigma: 1.1 },
  { name: 'toDtype', dtype: 'float32', scale: true },
  normalize,
];
const LISTS: Readonly<Record<string, readonly StepInput[]>> = {
  classical,
  'classical in float16': [...classical, { name: 'toDtype', dtype: 'float16' }],
  'flips and bilinear': [
    { name: 'randomVerticalFlip', p: 1 },
    { name: 'centerCrop', size: 40 },
    // torchvision fills masks like images.
    { name: 'randomRotation', degrees: [-30, -30], interpolation: 'bilinear', fill: 90, maskFill: 90 },
    { name: 'centerCrop', size: [20, 30] },
    { name: 'randomHorizontalFlip', p: 1 },
    { name: 'resize', size: [25, 35] },
  ],
};

test.each(Object.keys(LISTS))('the list "%s" gives the same as torchvision v2, within 2 levels', (name) => {
  const random = { next: () => 0.25 };
  for (const source of sources) {
    const { bytes } = bench.list(pictureOf(source), LISTS[name]!, random);
    const expected = valuesOf(bytesOf(source.lists.find((list) => list.name === name)!), name);
    const differences = differencesOf(valuesOf(bytes, name), expected);
    // For normalized values, one level is 1 / (255 * 0.224).
    const level = name.startsWith('classical') ? 1 / (255 * 0.224) : 1;
    expect(part(differences, 0), source.name).toBeLessThanOrEqual(2.1 * level);
    expect(mean(differences), source.name).toBeLessThanOrEqual(0.3 * level);
  }
});

test.each(Object.keys(LISTS))('the list "%s" moves a mask as torchvision v2 does', (name) => {
  for (const source of sources) {
    const { width, height, pixels } = pictureOf(source);
    const mask = { width, height, values: Uint8Array.from({ length: width * height }, (_, i) => pixels[i * 3]! >> 5) };
    const { passes } = planSample(compileTransform(LISTS[name]!), width, height, { next: () => 0.25 });
    const { values } = transformMask(mask, passes);
    const differences = differencesOf(values, bytesOf(source.lists.find((list) => list.name === name)!.mask));
    // If a position is exactly between two pixels, either may be the nearest.
    expect(part(differences, 0.002), source.name).toBe(0);
  }
});

test('a quarter turn with expand moves every pixel to its exact position, even if one side is odd', () => {
  const picture = { width: 5, height: 4, pixels: Uint8Array.from({ length: 60 }, (_, i) => i * 4) };
  const values = Uint8Array.from({ length: 20 }, (_, i) => i + 1);
  for (const [degrees, from] of [
    [90, (x: number, y: number) => x * 5 + (4 - y)],
    [270, (x: number, y: number) => (3 - x) * 5 + y],
  ] as const) {
    const rows = Array.from({ length: 20 }, (_, i) => from(i % 4, Math.floor(i / 4)));
    for (const interpolation of ['nearest', 'bilinear'] as const) {
      const list: StepInput[] = [{ name: 'randomRotation', degrees: [degrees, degrees], expand: true, interpolation }];
      expect(bench.list(picture, list, { next: () => 0 })).toEqual({
        width: 4,
        height: 5,
        bytes: Uint8Array.from(rows.flatMap((row) => [...picture.pixels.subarray(row * 3, row * 3 + 3)])),
      });
      const { passes } = planSample(compileTransform(list), 5, 4, { next: () => 0 });
      expect(transformMask({ width: 5, height: 4, values }, passes).values).toEqual(
        Uint8Array.from(rows, (row) => values[row]!),
      );
    }
  }
});

function valuesOf(bytes: Uint8Array, name: string): ArrayLike<number> {
  if (name === 'classical') return new Float32Array(bytes.buffer);
  if (name === 'classical in float16') return Float32Array.from(new Uint16Array(bytes.buffer), floatOfHalf);
  return bytes;
}

function effectsOf(one: Case, source: Source): Effect[] {
  if (one.kind !== 'jitter') return [effectOf(one, source)];
  return one.changes.map(([kind, value]) => effectOf({ ...one, kind, factor: value, turn: value }, source));
}

function effectOf(one: Case, source: Source): Effect {
  switch (one.kind) {
    case 'rotate': {
      const [x, y] = one.center ?? [source.width / 2, source.height / 2];
      const matrix = rotationOf(one.degrees, [x - source.width / 2, y - source.height / 2]);
      const size = one.expand ? rotatedSize(matrix, source) : { width: source.width, height: source.height };
      const fill = typeof one.fill === 'number' ? ([one.fill, one.fill, one.fill] as const) : one.fill;
      return { kind: 'rotate', matrix, size, interpolation: one.interpolation, fill, maskFill: 0 };
    }
    case 'blur':
      return { kind: 'blur', kernel: one.kernel, sigma: one.sigma };
    case 'hue':
      return { kind: 'hue', turn: one.turn };
    case 'grayscale':
      return { kind: 'saturation', factor: 0 };
    case 'erase': {
      const rect = { x: one.j as number, y: one.i as number, width: one.w as number, height: one.h as number };
      return { kind: 'erase', rect, value: one.v as Rgb };
    }
    default:
      return { kind: one.kind as 'brightness', factor: one.factor };
  }
}

function everyFourthRow(pixels: Uint8Array, width: number, height: number): Uint8Array {
  const rows: number[] = [];
  for (let y = 0; y < height; y += 4) rows.push(...pixels.subarray(y * width * 3, (y + 1) * width * 3));
  return Uint8Array.from(rows);
}

function differencesOf(a: ArrayLike<number>, b: ArrayLike<number>): Float64Array {
  expect(a.length).toBe(b.length);
  return Float64Array.from(a, (value, i) => Math.abs(value - b[i]!)).sort();
}

/** The largest difference, ignoring the given share of the largest values. */
function part(sorted: Float64Array, leftOut: number): number {
  return sorted[Math.floor((sorted.length - 1) * (1 - leftOut))]!;
}

function mean(differences: Float64Array): number {
  return differences.reduce((sum, value) => sum + value, 0) / differences.length;
}
