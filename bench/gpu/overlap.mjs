/**
 * Measures how much of the time for copying and converting batches on the device overlaps with the consumer's work, which is a
 * kernel of 30 ms for each batch on another stream. Batches are read from memory, so nothing is decoded, and pass through the
 * loader's own copy stream, slots and events. Times are measured by the device, between events on the consumer's stream.
 */
import { readFileSync } from 'node:fs';
import { openDevice } from '@shardtool/cuda';
import { slotMemory } from './copies.mjs';

const KERNEL_MS = 30;
/** Large enough to keep every multiprocessor busy, and small enough to leave room for other kernels, as most kernels do. */
const SPIN_GRID = { blocks: 128, threads: 256 };
const SIDE = 224;
/** Number of slots on the device with which only the copy stream limits the copies. */
const MANY_SLOTS = 16;
const SPIN = readFileSync(new URL('./spin.ptx', import.meta.url), 'latin1');

/** { share, batchMs, kernelMs }: the overlapping share, and the time of a batch and of a kernel alone. */
export async function measureOverlap(device, { batchSize, batches }) {
  const stream = device.createStream();
  const module = device.loadModule(SPIN);
  const spin = device.functionOf(module, 'shardtool_spin');
  const nanoseconds = new DataView(new BigUint64Array([BigInt(KERNEL_MS * 1e6)]).buffer);
  const work = () => device.launch(spin, SPIN_GRID, nanoseconds, [0], stream);
  const run = (slots, consume) => throughDevice({ device, stream, batchSize, batches, slots, consume });
  // The first run makes everything that is made on first use.
  await run(MANY_SLOTS, () => {});
  const alone = await run(MANY_SLOTS, () => {});
  const kernels = await between(device, stream, (begin) => {
    begin();
    for (let batch = 0; batch < batches; batch++) work();
  });
  const together = await run(3, work);
  device.unloadModule(module);
  device.destroyStream(stream);
  return {
    share: 1 - Math.max(0, together - kernels) / alone,
    batchMs: alone / (batches - 1),
    kernelMs: kernels / batches,
  };
}

/** Milliseconds from the time when the first batch is ready until the consumer is done with the last. */
async function throughDevice({ device, stream, batchSize, batches, slots, consume }) {
  const stage = await openDevice({
    ordinal: device.ordinal,
    slots,
    stream,
    dtype: 'float16',
    layout: 'nchw',
    normalization: { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
    release: 'auto',
  });
  const uploads = stage.upload(decodedBatches(batchSize, batches));
  const time = await between(device, stream, async (begin) => {
    let count = 0;
    for (let batch = await uploads.next(); batch !== null; batch = await uploads.next()) {
      if (count++ === 0) begin();
      consume();
    }
  });
  await uploads.end();
  await stage.close();
  return time;
}

async function between(device, stream, run) {
  const [from, to] = [device.createEvent({ isTimed: true }), device.createEvent({ isTimed: true })];
  await run(() => device.record(from, stream));
  device.record(to, stream);
  device.synchronize(stream);
  const time = device.milliseconds(from, to);
  for (const event of [from, to]) device.destroyEvent(event);
  return time;
}

/** Batches as the loader would deliver them, in slots that are used again after a batch is released. */
function decodedBatches(size, count) {
  const bytes = size * SIDE * SIDE * 3;
  const memory = slotMemory(bytes * MANY_SLOTS);
  const free = Array.from({ length: MANY_SLOTS }, (_, slot) => slot);
  let wake = () => {};
  const take = (index, slot) => ({
    epoch: 0,
    index,
    size,
    shape: [size, SIDE, SIDE, 3],
    images: memory.subarray(slot * bytes, (slot + 1) * bytes),
    extraImages: {},
    masks: {},
    offsets: null,
    release: () => {
      free.push(slot);
      wake();
    },
  });
  return {
    slotMemory: memory,
    state: () => null,
    async *[Symbol.asyncIterator]() {
      for (let index = 0; index < count; index++) {
        while (free.length === 0) {
          await new Promise((resolve) => {
            wake = resolve;
          });
        }
        yield take(index, free.shift());
      }
    },
  };
}
