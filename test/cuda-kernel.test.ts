import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  affine,
  BLOCK_THREADS,
  entryName,
  PARAMETER_OFFSETS,
  packParameters,
  ptxModule,
  VALUE_BYTES,
} from '#cuda/kernel';
import { halfFloatTable } from '#reader/kernels/half-float';
import { emptyFolder } from './datasets.js';
import { GuardedKernel, wholeAxis } from './kernels-memory.js';
import { parseModule, runThread } from './ptx-interpreter.js';
import { pythonWith, runPython } from './python.js';

const KINDS = (['uint8', 'float32', 'float16', 'bfloat16'] as const).flatMap((dtype) =>
  (['nchw', 'nhwc'] as const).flatMap((layout) => (entryName(dtype, layout) === null ? [] : [{ dtype, layout }])),
);
const IMAGENET = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } as const;
const SOURCE = 0x7f00_0000_0000n;
const TARGET = 0x7f10_0000_0000n;

interface Work {
  readonly images: number;
  readonly plane: number;
  readonly normalization: {
    readonly mean: readonly [number, number, number];
    readonly std: readonly [number, number, number];
  };
  readonly bytes: Uint8Array;
}

/** The result of the emitted text for these bytes, thread by thread; threads past the last pixel run, too. */
function interpret(dtype: (typeof KINDS)[number]['dtype'], layout: 'nchw' | 'nhwc', work: Work): DataView {
  const module = parseModule(ptxModule(dtype, layout));
  const { images, plane, normalization, bytes } = work;
  const target = new DataView(new ArrayBuffer(bytes.length * VALUE_BYTES[dtype]));
  const { mean, std } = normalization;
  const parameters = packParameters({ source: SOURCE, target: TARGET, images, plane, ...affine(mean, std) });
  const memories = [
    { address: SOURCE, bytes: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) },
    { address: TARGET, bytes: target },
  ];
  const blocks = Math.ceil((images * plane) / BLOCK_THREADS);
  for (let block = 0; block < blocks; block++) {
    for (let thread = 0; thread < BLOCK_THREADS; thread++) {
      runThread(module, parameters, memories, { block, threads: BLOCK_THREADS, thread });
    }
  }
  return target;
}

/** For value i of the result: the byte of the image and its channel. */
function sourceOf(value: number, layout: 'nchw' | 'nhwc', plane: number): { at: number; channel: number } {
  if (layout === 'nhwc') return { at: value, channel: value % 3 };
  const image = Math.floor(value / (3 * plane));
  const channel = Math.floor(value / plane) % 3;
  return { at: (image * plane + (value % plane)) * 3 + channel, channel };
}

/** The upper half of the nearer of the two bfloat16 around a float32, found by their distance; ties to even. */
function nearestBfloat16(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  const below = view.getUint16(0);
  const numberOf = (bits: number): number => {
    view.setUint32(0, bits * 65_536);
    return view.getFloat32(0);
  };
  const down = Math.abs(value - numberOf(below));
  const up = Math.abs(numberOf(below + 1) - value);
  if (down === up) return below % 2 === 0 ? below : below + 1;
  return down < up ? below : below + 1;
}

const works: fc.Arbitrary<Work> = fc
  .record({
    images: fc.integer({ min: 1, max: 3 }),
    plane: fc.integer({ min: 1, max: 130 }),
    mean: fc.tuple(...([0, 1, 2] as const).map(() => fc.float({ min: -2, max: 2, noNaN: true }))),
    std: fc.tuple(...([0, 1, 2] as const).map(() => fc.float({ min: Math.fround(0.001), max: 4, noNaN: true }))),
    seed: fc.integer(),
  })
  .map(({ images, plane, mean, std, seed }) => ({
    images,
    plane,
    normalization: { mean: mean as [number, number, number], std: std as [number, number, number] },
    bytes: Uint8Array.from({ length: images * plane * 3 }, (_, i) => (Math.imul(i + 1, 2_654_435_761) ^ seed) >>> 24),
  }));

test.each(KINDS)('the PTX for $dtype $layout writes every value correctly to its position', ({ dtype, layout }) => {
  fc.assert(
    fc.property(works, (work) => {
      const result = interpret(dtype, layout, work);
      const { scale, bias } = affine(work.normalization.mean, work.normalization.std);
      const halves = halfFloatTable(work.normalization);
      const values = work.bytes.length;
      for (let value = 0; value < values; value++) {
        const { at, channel } = sourceOf(value, layout, work.plane);
        const byte = work.bytes[at]!;
        const float = Math.fround(Math.fround(byte * scale[channel]!) + bias[channel]!);
        if (dtype === 'uint8') expect(result.getUint8(value)).toBe(byte);
        else if (dtype === 'float32') expect(result.getFloat32(4 * value, true)).toBe(float);
        else if (dtype === 'float16') expect(result.getUint16(2 * value, true)).toBe(halves[256 * channel + byte]);
        else expect(result.getUint16(2 * value, true)).toBe(nearestBfloat16(float));
      }
    }),
    { numRuns: 8 },
  );
});

test('all 256 bytes of the three channels are converted as by the CPU kernel, bit for bit', () => {
  const pixels = Uint8Array.from({ length: 256 * 3 }, (_, i) => Math.floor(i / 3));
  const result = interpret('float32', 'nchw', { images: 1, plane: 256, normalization: IMAGENET, bytes: pixels });
  const cpu = new GuardedKernel({ sourceColumns: 16, sourceRows: 16, width: 16, height: 16 }, 1 << 16);
  const axis = wholeAxis(16, 16);
  const expected = cpu.resize({ width: 16, height: 16, pixels }, axis, axis, 'float32-nchw', {
    normalization: IMAGENET,
  });
  expect(Buffer.compare(new Uint8Array(result.buffer), expected)).toBe(0);
});

test('the module requires nothing newer than sm_50, and its parameters are where the launch puts them', () => {
  for (const { dtype, layout } of KINDS) {
    const module = parseModule(ptxModule(dtype, layout));
    expect(module.target).toBe('sm_50');
    expect(module.entry).toBe(entryName(dtype, layout));
    expect([...module.parameters.values()]).toEqual([...PARAMETER_OFFSETS]);
  }
});

const assembler = pythonWith('nvidia.cuda_nvcc');

test.runIf(assembler !== null)("NVIDIA's assembler accepts every module, for the oldest and for new GPUs", () => {
  const [package_] = runPython<string[]>(
    'import json, nvidia.cuda_nvcc as n; print(json.dumps(list(n.__path__)))',
    null,
  );
  const folder = emptyFolder();
  const assemble = (text: string, target: string): string => {
    const [source, output] = [path.join(folder, 'module.ptx'), path.join(folder, 'module.cubin')];
    writeFileSync(source, text);
    const ptxas = path.join(package_!, 'bin/ptxas');
    const { stdout, stderr } = spawnSync(ptxas, ['-arch', target, '-o', output, source], { timeout: 60_000 });
    return `${stdout}${stderr}`.trim();
  };
  const files = ['bench/gpu/spin.ptx', 'test/fixtures/trap.ptx'].map((file) => readFileSync(file, 'latin1'));
  for (const text of [...KINDS.map(({ dtype, layout }) => ptxModule(dtype, layout)), ...files]) {
    for (const target of ['sm_50', 'sm_70', 'sm_90', 'sm_120']) expect(assemble(text, target)).toBe('');
    // The previous version does not support sm_50: the oldest possible driver accepts the module.
    expect(assemble(text.replace('.version 4.0', '.version 3.1'), 'sm_50')).toMatch(
      /3\.1 does not support .target sm_50/,
    );
  }
});
