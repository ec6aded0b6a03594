import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { GivenAnnotations } from '#reader/transform/annotations';
import { planSample } from '#reader/transform/plan';
import { compileTransform, type StepInput } from '#reader/transform/transform';

/** The cases that fixtures/boxes/make.py writes. */
interface Case {
  readonly steps: readonly StepInput[];
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly number[];
  readonly points: readonly number[];
  readonly numbers: readonly number[];
  readonly size: readonly [number, number];
  readonly rows: readonly number[];
  readonly moved: readonly number[];
  readonly pointsMoved: readonly number[];
}

const { cases }: { cases: readonly Case[] } = JSON.parse(
  readFileSync(new URL('fixtures/boxes/torchvision.json', import.meta.url), 'utf8'),
);
const lists = [...new Set(cases.map(({ steps }) => JSON.stringify(steps)))];

test.each(lists)(
  '%s moves boxes and keypoints to within 1/1000 pixel of torchvision v2, and keeps the same rows',
  (list) => {
    for (const one of cases.filter(({ steps }) => JSON.stringify(steps) === list)) {
      let drawn = 0;
      const random = { next: () => one.numbers[drawn++]! / 4096 };
      const plan = planSample(compileTransform(one.steps), one.width, one.height, random, givenOf(one));
      const { rows, boxes, labels, keypoints } = plan.annotations!;
      expect([plan.height, plan.width]).toEqual(one.size);
      expect(rows).toEqual(one.rows);
      expect([...labels!]).toEqual(one.rows);
      expect(drawn).toBe(one.numbers.length);
      expect(farthest(boxes!, one.moved)).toBeLessThan(1e-3);
      expect(
        farthest(
          keypoints!.filter((_, i) => i % 3 < 2),
          one.pointsMoved,
        ),
      ).toBeLessThan(1e-3);
      expect(keypoints!.filter((_, i) => i % 3 === 2).every((value) => value === 2)).toBe(true);
    }
  },
);

function givenOf({ boxes, points }: Case): GivenAnnotations {
  const count = boxes.length / 4;
  const values = Float64Array.from({ length: count * 6 }, (_, i) =>
    i % 3 === 2 ? 2 : points[Math.floor(i / 3) * 2 + (i % 3)]!,
  );
  return {
    count,
    boxes: Float64Array.from(boxes),
    labels: Int32Array.from({ length: count }, (_, i) => i),
    keypoints: { perObject: 2, values },
    polygons: null,
    normalized: { boxes: false, keypoints: false, polygons: false },
  };
}

function farthest(values: ArrayLike<number>, expected: readonly number[]): number {
  expect(values.length).toBe(expected.length);
  return Math.max(0, ...expected.map((value, i) => Math.abs(value - values[i]!)));
}
