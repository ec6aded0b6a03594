/// <reference path="../packages/reader/src/webassembly.d.ts" />
import fc from 'fast-check';
import { CropIndexMaker } from '#reader/codec/crop-index/make';
import { CropIndexKernel, type GroupRange } from '#reader/kernels/crop-index';
import { images } from './crop-index-workbench.js';

const PAGE = 65_536;
const GUARD = 0xa5;
const GUARD_BYTES = 70_000;
const SOURCE = PAGE;
const PACKED = 2 ** 20;
const ENTRIES = 2 ** 21;
const TARGET = 6 * 2 ** 20;

/** A kernel in a memory with known writable ranges. */
export class DamageBench {
  readonly maker = new CropIndexMaker();
  readonly kernel: CropIndexKernel;
  readonly memory: Buffer;

  constructor() {
    const memory = new WebAssembly.Memory({ initial: 160, maximum: 160, shared: true });
    this.kernel = new CropIndexKernel(memory, 0);
    this.memory = Buffer.from(memory.buffer);
  }

  /** Unpacks and splices; returns whether that gave a small JPEG. Throws if anything else, such as the file or the index, was changed. */
  run(image: Uint8Array, index: Uint8Array, wanted: GroupRange, room: number): boolean {
    const { memory, kernel } = this;
    memory.set(image, SOURCE);
    memory.set(index, PACKED);
    if (kernel.parse(SOURCE, image.length) < 0) return false;
    const { mcusX, mcusY } = kernel.grid;
    // Every other crop may be outside the image.
    const range = room % 2 === 0 ? wanted : within(wanted, Math.ceil(mcusX / Math.max(1, index[0] ?? 1)), mcusY);
    const count = (range.bottom - 1) * Math.ceil(mcusX / Math.max(1, index[0] ?? 1)) + range.right + 1;
    const entriesEnd = ENTRIES + count * 12;
    if (entriesEnd + GUARD_BYTES > TARGET) return false;
    const guards = [
      memory.subarray(entriesEnd, entriesEnd + GUARD_BYTES),
      memory.subarray(TARGET + room, TARGET + room + GUARD_BYTES),
    ];
    for (const guard of guards) guard.fill(GUARD);
    const before = Buffer.from(memory.subarray(SOURCE, SOURCE + image.length));
    let made = false;
    if (kernel.unpack(PACKED, index.length, count, ENTRIES) >= 0) {
      const bytes = kernel.splice(ENTRIES, range, TARGET, room);
      made = bytes > 0;
      if (bytes > room) throw new Error(`${bytes} bytes in a room of ${room}`);
    }
    const whole = Buffer.alloc(GUARD_BYTES, GUARD);
    if (guards.some((guard) => !guard.equals(whole))) throw new Error('a byte outside of the target was written');
    if (!before.equals(memory.subarray(SOURCE, SOURCE + image.length))) throw new Error('the file was written');
    return made;
  }
}

function within({ left, right, top, bottom }: GroupRange, groups: number, rows: number): GroupRange {
  const [l, t] = [left % groups, top % rows];
  return { left: l, right: Math.min(groups, l + right - left), top: t, bottom: Math.min(rows, t + bottom - top) };
}

const changes = (most: number) =>
  fc.array(
    fc.tuple(
      fc.nat(10_000).map((n) => n / 10_001),
      fc.oneof(fc.constant(255), fc.nat(255)),
    ),
    {
      maxLength: most,
    },
  );

/** The number of small JPEGs from this many damaged indexes and files. */
export function checkDamage(bench: DamageBench, runs: number): number {
  let made = 0;
  fc.assert(
    fc.property(
      images(150),
      changes(2),
      changes(6),
      fc.record({ cutIndex: fc.nat(9), cutImage: fc.nat(19), fill: fc.nat(9), room: fc.nat(40_000) }),
      fc.tuple(fc.nat(2), fc.nat(3), fc.nat(5), fc.nat(8)),
      (image, inIndex, inImage, how, [left, width, top, height]) => {
        const own = bench.maker.make(image.bytes) as Uint8Array;
        const index = damaged(own, inIndex, how.cutIndex === 0 ? 0.5 : 1);
        if (how.fill < 2) index.fill(how.fill === 0 ? 0 : 255, 5);
        // In half of the cases only the index is damaged.
        const bytes = damaged(image.bytes, how.room % 4 < 2 ? [] : inImage, how.cutImage === 0 ? 0.7 : 1);
        const range = { left, right: left + 1 + width, top, bottom: top + 1 + height };
        if (bench.run(bytes, index, range, 4096 + 128 + how.room)) made++;
      },
    ),
    { numRuns: runs },
  );
  return made;
}

function damaged(bytes: Uint8Array, changes: readonly (readonly [number, number])[], kept: number): Uint8Array {
  const copy = bytes.slice(0, Math.floor(bytes.length * kept));
  for (const [place, value] of changes) copy[Math.floor(place * copy.length)] = value;
  return copy;
}
