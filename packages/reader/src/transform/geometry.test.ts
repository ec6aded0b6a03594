import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { transformMask } from '../decode/transform-mask.js';
import { planSample } from './plan.js';
import { compileTransform, type StepInput } from './transform.js';

/** The cases that fixtures/transforms/geometry.py writes. */
interface Fixture {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly (readonly number[])[];
  readonly moved: readonly {
    readonly step: StepInput;
    readonly seed: number;
    readonly mask: readonly number[];
    readonly boxes: readonly (readonly number[])[];
  }[];
  readonly erased: readonly {
    readonly options: { mode: 'const' | 'rand' | 'pixel'; min_count: number; max_count?: number; max_area?: number };
    readonly seed: number;
    readonly pixels: number;
  }[];
}

const fixture: Fixture = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/transforms/geometry.json', import.meta.url), 'utf8'),
);
const NOT_NORMALIZED = { boxes: false, keypoints: false, polygons: false };

test('masks and boxes follow an affine map and a perspective as in torchvision', () => {
  const { width, height } = fixture;
  const values = Uint8Array.from({ length: width * height }, (_, i) => i % 251);
  for (const { step, seed, mask, boxes } of fixture.moved) {
    const given = {
      ...{ count: 3, boxes: Float64Array.from(fixture.boxes.flat()), labels: null, keypoints: null, polygons: null },
      normalized: NOT_NORMALIZED,
    };
    const numbers = numbersOf(seed);
    const transform = compileTransform([{ ...step, maskFill: 255 } as StepInput]);
    const { passes, annotations } = planSample(transform, width, height, { next: () => numbers.shift()! }, given);
    const moved = transformMask({ width, height, values }, passes).values;
    const name = `${JSON.stringify(step)} ${seed}`;
    // If a position is exactly between two pixels, either may be the nearest.
    expect(moved.filter((value, i) => value !== mask[i]).length, name).toBeLessThan(5);
    for (const [i, value] of boxes.flat().entries()) expect(annotations!.boxes![i], name).toBeCloseTo(value, 2);
  }
});

test("randomErasing erases as many pixels as timm's, for each mode and number of rectangles", () => {
  for (const { options, seed, pixels } of fixture.erased) {
    const { mode, min_count: minCount, max_count: maxCount, max_area: most = 1 / 3 } = options;
    const erasing = {
      mode,
      minCount,
      ...(maxCount === undefined ? {} : { maxCount }),
      ...{ p: 1, ratio: [0.3, 1 / 0.3] as const },
    };
    const transform = compileTransform([
      { name: 'toDtype', dtype: 'float32', scale: true },
      { name: 'randomErasing', scale: [0.02, most], ...erasing },
    ]);
    const numbers = numbersOf(seed);
    const { erased } = planSample(transform, 60, 40, { next: () => numbers.shift()! });
    if (mode === 'rand') {
      expect(erased.every(({ value }) => Array.isArray(value) && value.length === 3)).toBe(true);
      const area = erased.reduce((sum, { rect }) => sum + rect.width * rect.height, 0);
      expect(area).toBe(pixels);
      continue;
    }
    // torch draws the pixel values with its own generator, so a second rectangle has other numbers.
    if (mode === 'pixel' && erased.length > 1) continue;
    const covered = new Set<number>();
    for (const { rect } of erased) {
      for (let y = rect.y; y < rect.y + rect.height; y++) {
        for (let x = rect.x; x < rect.x + rect.width; x++) covered.add(y * 60 + x);
      }
    }
    expect(covered.size, JSON.stringify({ options, seed })).toBe(pixels);
    expect(erased[0]?.value).toBe(mode === 'pixel' ? 'random' : 0);
  }
});

test('random colors need finished values, and a mode excludes a value', () => {
  const message = (...list: StepInput[]) => {
    try {
      compileTransform(list);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  expect(message({ name: 'randomErasing', mode: 'pixel' })).toMatch(
    'has the mode pixel, whose values do not fit in a byte',
  );
  expect(message({ name: 'randomErasing', mode: 'rand', value: 3 })).toMatch('cannot be combined with the mode rand');
  expect(message({ name: 'randomErasing', minCount: 3, maxCount: 2 })).toMatch('must be at least minCount');
});

test('the distribution of randomRotate90 has four turns', () => {
  const transform = compileTransform([{ name: 'randomRotate90', p: 1 }]);
  const sizes = [0, 0.3, 0.6, 0.9].map((turn) => {
    const draws = [0, turn];
    const { passes, width } = planSample(transform, 5, 3, { next: () => draws.shift()! });
    return [passes.flatMap(({ effects }) => effects ?? []).length, width];
  });
  expect(sizes).toEqual([
    [0, 5],
    [1, 3],
    [1, 5],
    [1, 3],
  ]);
});

/** The random numbers of a case, as fixtures/transforms/recipes.py makes them. */
function numbersOf(seed: number): number[] {
  return Array.from({ length: 256 }, (_, i) => {
    let mix = seed * 256 + i;
    mix = Math.imul(mix ^ (mix >>> 16), 0x7feb352d);
    mix = Math.imul(mix ^ (mix >>> 15), 0x846ca68b);
    return ((mix ^ (mix >>> 16)) >>> 0) / 2 ** 32;
  });
}
