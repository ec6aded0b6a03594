import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DecodeBufferError } from '#reader/kernels/resize';
import type { Axis } from '#reader/kernels/taps';
import { GuardedKernel, noise, type Picture, wholeAxis } from './kernels-memory.js';
import { resizeReference } from './kernels-reference.js';

const MOST = 70;
const kernel = new GuardedKernel({ sourceColumns: MOST, sourceRows: MOST, width: MOST, height: 1 }, 1 << 20);

/** Any axis of up to 70 pixels: reduced or enlarged, whole or a window, of a whole source or a part of it, flipped or not. */
const anyAxis = fc
  .record({
    source: fc.integer({ min: 1, max: MOST }),
    output: fc.integer({ min: 1, max: MOST }),
    window: fc.tuple(fc.nat(), fc.nat()),
    box: fc.option(
      fc.tuple(fc.double({ min: 0, max: 0.5, noNaN: true }), fc.double({ min: 0.1, max: 1, noNaN: true })),
    ),
    flip: fc.boolean(),
  })
  .map(({ source, output, window, box, flip }): Axis => {
    const first = window[0] % output;
    const boxStart = (box?.[0] ?? 0) * source;
    return {
      ...{ source, output, first, count: 1 + (window[1] % (output - first)), flip },
      ...(box && { boxStart, boxLength: (source - boxStart) * box[1] }),
    };
  });

const anySeed = fc.integer({ min: 0, max: 2 ** 30 });
const normalization = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } as const;

test('any resize, window and flip is within 2 levels of a filter in floating point', () => {
  fc.assert(
    fc.property(anyAxis, anyAxis, anySeed, (x, y, seed) => {
      const picture = noise(x.source, y.source, seed);
      const expected = resizeReference(picture.pixels, picture.width, picture.height, x, y);
      expect(largestDifference(kernel.resize(picture, x, y, 'uint8-nhwc'), expected)).toBeLessThanOrEqual(2);
    }),
    { numRuns: 150 },
  );
});

test('channels first equals channels last, transposed; floats are the bytes times a scale plus a bias', () => {
  fc.assert(
    fc.property(anyAxis, anyAxis, anySeed, (x, y, seed) => {
      const picture = noise(x.source, y.source, seed);
      const planes = channelsFirst(kernel.resize(picture, x, y, 'uint8-nhwc'));
      expect(kernel.resize(picture, x, y, 'uint8-nchw')).toEqual(planes);
      const floats = kernel.resize(picture, x, y, 'float32-nchw', { normalization });
      expect(new Float32Array(floats.buffer)).toEqual(normalized(planes));
    }),
    { numRuns: 100 },
  );
});

test('without a normalization, floats are bytes / 255', () => {
  const floats = kernel.resize(noise(9, 9, 1), wholeAxis(9, 9), wholeAxis(9, 9), 'float32-nchw');
  const planes = channelsFirst(noise(9, 9, 1).pixels);
  expect(new Float32Array(floats.buffer)).toEqual(Float32Array.from(planes, (byte) => byte * Math.fround(1 / 255)));
});

test('a window equals that part of the full resize', () => {
  fc.assert(
    fc.property(anyAxis, anyAxis, anySeed, (x, y, seed) => {
      const picture = noise(x.source, y.source, seed);
      const whole = (axis: Axis) => ({ ...axis, first: 0, count: axis.output, flip: false });
      const full = kernel.resize(picture, whole(x), whole(y), 'uint8-nhwc');
      const part = Uint8Array.from(
        indices(y).flatMap((row) =>
          indices(x).flatMap((column) => [...full.subarray((row * x.output + column) * 3).subarray(0, 3)]),
        ),
      );
      expect(kernel.resize(picture, x, y, 'uint8-nhwc')).toEqual(part);
    }),
    { numRuns: 100 },
  );
});

test('bytes around the source do not influence the result', () => {
  fc.assert(
    fc.property(anyAxis, anyAxis, anySeed, (x, y, seed) => {
      const picture = noise(x.source, y.source, seed);
      const black = kernel.resize(picture, x, y, 'uint8-nhwc', { surroundings: 0 });
      expect(kernel.resize(picture, x, y, 'uint8-nhwc', { surroundings: 255 })).toEqual(black);
    }),
    { numRuns: 100 },
  );
});

test('the same size is a copy', () => {
  const picture = noise(61, 47, 3);
  expect(kernel.resize(picture, wholeAxis(61, 61), wholeAxis(47, 47), 'uint8-nhwc')).toEqual(picture.pixels);
});

test('one pixel can be enlarged to 4,096 x 4,096', () => {
  const large = new GuardedKernel({ sourceColumns: 1, sourceRows: 1, width: 4096, height: 4096 }, 64 << 20);
  const picture = { width: 1, height: 1, pixels: Uint8Array.of(7, 99, 255) };
  const planes = large.resize(picture, wholeAxis(1, 4096), wholeAxis(1, 4096), 'uint8-nchw');
  const expected = new Uint8Array(planes.length);
  const area = 4096 * 4096;
  for (const [channel, byte] of picture.pixels.entries()) expected.fill(byte, channel * area, (channel + 1) * area);
  expect(Buffer.compare(planes, expected)).toBe(0);
});

test('stripes of 65,000 black and white columns become grey', () => {
  const wide = new GuardedKernel({ sourceColumns: 65_000, sourceRows: 3, width: 28, height: 1 }, 4 << 20);
  const picture = stripes(65_000, 3);
  for (const width of [1, 27, 28]) {
    const x = wholeAxis(65_000, width);
    const expected = resizeReference(picture.pixels, picture.width, picture.height, x, wholeAxis(3, 1));
    const result = wide.resize(picture, x, wholeAxis(3, 1), 'uint8-nhwc');
    expect(largestDifference(result, expected)).toBeLessThanOrEqual(2);
  }
});

test('a source of thousands of rows is resized in a buffer of a few rows', () => {
  const tall = new GuardedKernel({ sourceColumns: 5, sourceRows: 3001, width: 17, height: 40 }, 4 << 20);
  const picture = noise(5, 3001, 8);
  for (const [height, flip] of [
    [40, false],
    [222, true],
    [3001, false],
    [4096, true],
  ] as const) {
    const y = wholeAxis(3001, height, flip);
    const expected = resizeReference(picture.pixels, 5, 3001, wholeAxis(5, 17), y);
    expect(largestDifference(tall.resize(picture, wholeAxis(5, 17), y, 'uint8-nhwc'), expected)).toBeLessThanOrEqual(2);
  }
});

test('addresses up to the last one of 4 GiB work', () => {
  const largest = { sourceColumns: 50, sourceRows: 50, width: 33, height: 33 };
  const high = new GuardedKernel(largest, 128 << 10, 2 ** 32);
  const picture = noise(50, 50, 4);
  for (const layout of ['uint8-nhwc', 'uint8-nchw', 'float32-nchw'] as const) {
    const expected = kernel.resize(picture, wholeAxis(50, 33), wholeAxis(50, 33, true), layout);
    expect(high.resize(picture, wholeAxis(50, 33), wholeAxis(50, 33, true), layout)).toEqual(expected);
  }
});

test('tables that no longer fit are replaced with new ones', () => {
  const picture = noise(70, 1, 5);
  const before = kernel.resize(picture, wholeAxis(70, 32), wholeAxis(1, 1), 'uint8-nhwc');
  // 2,000 tables of 2.3 KB, and 4 MiB for them.
  for (let i = 0; i < 2000; i++) {
    const x = { ...wholeAxis(70, 1), boxStart: i / 2000, boxLength: 69 };
    kernel.resize(picture, x, wholeAxis(1, 1), 'uint8-nhwc');
  }
  expect(kernel.resize(picture, wholeAxis(70, 32), wholeAxis(1, 1), 'uint8-nhwc')).toEqual(before);
});

test('a resize that needs more working memory than available throws an error with the amount', () => {
  const small = new GuardedKernel({ sourceColumns: 8, sourceRows: 8, width: 8, height: 8 }, 1 << 20);
  const resize = () => small.resize(noise(100, 100, 6), wholeAxis(100, 50), wholeAxis(100, 50), 'uint8-nhwc');
  expect(resize).toThrow(DecodeBufferError);
  expect(resize).toThrow(
    /a resize of 100x100 pixels to 50x50 needs \d+ MB of decode memory, but a worker has \d+ MB for it/,
  );
});

test('a resize of an image with a longer side than any JPEG names a remedy that helps', () => {
  const small = new GuardedKernel({ sourceColumns: 8, sourceRows: 8, width: 8, height: 8 }, 1 << 20);
  const resize = () => small.resize(noise(70_000, 1, 6), wholeAxis(70_000, 50), wholeAxis(1, 1), 'uint8-nhwc');
  expect(resize).toThrow(/sides of up to 65535 pixels: crop before the resize, or pack smaller images$/);
});

test('the module has no data and no memory, so that many instances can share one memory', () => {
  const bytes = readFileSync(createRequire(import.meta.url).resolve('#reader/kernels/resize.wasm'));
  const sections = sectionsOf(bytes);
  const data = 11;
  const start = 8;
  const memory = 5;
  const code = 10;
  expect(sections).toContain(code);
  for (const section of [data, start, memory]) expect(sections).not.toContain(section);
});

/** The numbers of a module's sections. WebAssembly Core Specification, 5.5.2: a byte, the size in LEB128, the content. */
function sectionsOf(module: Uint8Array): number[] {
  const sections: number[] = [];
  for (let at = 8; at < module.length; ) {
    sections.push(module[at++]!);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++]!;
      size += (byte & 127) << shift;
      if (byte < 128) break;
    }
    at += size;
  }
  return sections;
}

function largestDifference(a: Uint8Array, b: Uint8Array): number {
  expect(a.length).toBe(b.length);
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
}

function channelsFirst(pixels: Uint8Array): Uint8Array {
  const area = pixels.length / 3;
  return pixels.map((_, i) => pixels[(i % area) * 3 + Math.floor(i / area)]!);
}

/** Like the kernel: in 32 bits, one multiplication and one addition. */
function normalized(planes: Uint8Array): Float32Array {
  const area = planes.length / 3;
  const { mean, std } = normalization;
  return Float32Array.from(planes, (byte, i) => {
    const channel = Math.floor(i / area);
    return Math.fround(byte * Math.fround(1 / (255 * std[channel]!))) + Math.fround(-mean[channel]! / std[channel]!);
  });
}

/** The pixels of the full resize in the window, in the order of the result. */
function indices({ first, count, flip }: Axis): number[] {
  const kept = Array.from({ length: count }, (_, i) => first + i);
  return flip ? kept.reverse() : kept;
}

function stripes(width: number, height: number): Picture {
  const pixels = new Uint8Array(width * height * 3).map((_, i) => (Math.floor(i / 3) & 1) * 255);
  return { width, height, pixels };
}
