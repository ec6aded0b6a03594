import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Effect } from '#reader/effects';
import type { StepInput } from '#reader/transform';
import type { Picture } from './kernels-memory.js';
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
const sources: Source[] = JSON.parse(readFileSync(new URL('steps.json', fixtures), 'utf8'));
const stored = gunzipSync(readFileSync(new URL('steps.bin.gz', fixtures)));
const bytesOf = ({ offset, bytes }: Stored) => new Uint8Array(stored.subarray(offset, offset + bytes));
const bench = new TransformBench();
const kinds = [...new Set(sources.flatMap(({ cases }) => cases.map(({ kind }) => kind)))];

test.each(kinds)('%s give the pixels of Pillow, torchvision or timm', (kind) => {
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

function run(
  picture: Picture,
  { list, effects, draws = [0.25] }: Case,
): { width: number; height: number; bytes: Uint8Array } {
  let drawn = 0;
  if (list !== undefined) return bench.list(picture, list, { next: () => draws[drawn++ % draws.length]! });
  const { pixels, ...size } = bench.effects(picture, effects!);
  return { ...size, bytes: pixels };
}
