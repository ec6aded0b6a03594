/**
 * How much of the time that batches take to the device, copy and conversion, hides behind the consumer's work: a kernel of
 * 30 ms for each, on a stream of its own. Batches come from memory, so that decoding has no part in it, and go through the
 * loader's own copy stream, slots and events. Times are the device's, between events on the consumer's stream.
 */
import { readFileSync } from 'node:fs';
import { openDevice } from '@shardtool/cuda';
import { slotMemory } from './copies.mjs';

const KERNEL_MS = 30;
/** Enough to keep every multiprocessor busy, and to leave room beside it, as most kernels do. */
const SPIN_GRID = { blocks: 128, threads: 256 };
const SIDE = 224;
/** Slots on the device with which nothing but the copy stream bounds the copies alone. */
const MANY_SLOTS = 16;
const SPIN = readFileSync(new URL('./spin.ptx', import.meta.url), 'latin1');

/** { share, batchMs, kernelMs }: the hidden share, and what a batch and a kernel take alone. */
export async function measureOverlap(device, { batchSize, batches }) {
  const stream = device.createStream();
  const module = device.loadModule(SPIN);
  const spin = device.functionOf(module, 'shardtool_spin');
  const nanoseconds = new DataView(new BigUint64Array([BigInt(KERNEL_MS * 1e6)]).buffer);
  const work = () => device.launch(spin, SPIN_GRID, nanoseconds, [0], stream);
  const run = (slots, consume) => throughDevice({ device, stream, batchSize, batches, slots, consume });
  // Once for what is made on first use.
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

/** Milliseconds from the first batch being ready to the consumer being done with the last. */
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

/** Batches as the loader would give them, out of slots that come back when they are released. */
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
