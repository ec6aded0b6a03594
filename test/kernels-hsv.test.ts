import { expect, test } from 'vitest';
import { EffectKernels } from '#reader/kernels/effects';

const TABLES = 1024;
const ADDRESS = 65_536;
const memory = new WebAssembly.Memory({ initial: 16, maximum: 16, shared: true });
const bytes = new Uint8Array(memory.buffer);
const kernels = new EffectKernels(memory);

const roundHalfToEven = (value: number) => {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
};
const share = (numerator: number, denominator: number) =>
  denominator === 0 ? 0 : roundHalfToEven((numerator * 4096) / denominator);
const f32 = Math.fround;

/** One pixel, by the formulas of OpenCV's 8-bit HSV, whose floats have 32 bits. */
function expected([red, green, blue]: readonly [number, number, number], tables: Uint8Array): number[] {
  const value = Math.max(red, green, blue);
  const range = value - Math.min(red, green, blue);
  const saturation = (range * share(255, value) + 2048) >> 12;
  const turn = value === red ? green - blue : value === green ? blue - red + 2 * range : red - green + 4 * range;
  const hue = (turn * share(180, 6 * range) + 2048) >> 12;
  const h = f32(tables[hue < 0 ? hue + 180 : hue]! * f32(6 / 180));
  const s = f32(tables[256 + saturation]! * f32(1 / 255));
  const v = f32(tables[512 + value]! * f32(1 / 255));
  const part = f32(h - Math.floor(h));
  const level = (share: number) => Math.max(0, Math.min(255, Math.trunc(f32(f32(v * f32(1 - share)) * 255))));
  const [high, low, falling, rising] = [level(0), level(s), level(f32(s * part)), level(f32(s * f32(1 - part)))];
  const sectors = [
    [high, rising, low],
    [falling, high, low],
    [low, high, rising],
    [low, falling, high],
    [rising, low, high],
    [high, low, falling],
  ] as const;
  return [...sectors[Math.floor(h)]!];
}

/** Colours on a grid, with both ends of the range. */
const STEPS = Array.from({ length: 24 }, (_, i) => Math.round((i * 255) / 23));
const COLOURS = STEPS.flatMap((red) => STEPS.flatMap((green) => STEPS.map((blue) => [red, green, blue] as const)));

test.each<[string, (i: number) => number, (i: number) => number, (i: number) => number]>([
  ['unchanged', (i) => i % 180, (i) => i, (i) => i],
  ['shifted and scaled', (i) => (i + 77) % 180, (i) => Math.min(255, i * 1.7), (i) => i * 0.6],
  ['shuffled', (i) => (i * 67) % 180, (i) => (i * 37) & 255, (i) => (i * 91) & 255],
])("HSV that is %s has the values of OpenCV's formulas, for any number of pixels", (_, hue, saturation, value) => {
  const tables = Uint8Array.from(
    [hue, saturation, value].flatMap((entry) => Array.from({ length: 256 }, (_, i) => entry(i))),
  );
  const results = COLOURS.flatMap((colour) => expected(colour, tables));
  for (const count of [COLOURS.length, 1, 2, 3, 5]) {
    bytes.set(COLOURS.slice(0, count).flat(), ADDRESS);
    kernels.lookUpHsv({ address: ADDRESS, width: count, height: 1 }, tables, TABLES);
    expect(bytes.slice(ADDRESS, ADDRESS + count * 3)).toEqual(Uint8Array.from(results.slice(0, count * 3)));
  }
});
