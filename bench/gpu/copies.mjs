/** GB/s of copies of the size of a batch from the host to the device that @shardtool/cuda opened. */
const ROUNDS = 20;
const REPEATS = 5;

/** Memory like that of the loader's slots: a WebAssembly memory that worker threads share. */
export function slotMemory(bytes) {
  const pages = Math.ceil(bytes / 65_536);
  return new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer).fill(1);
}

/** { pageable, pinned } in GB/s: medians of a few runs, each of {@link ROUNDS} copies one after the other. */
export function measureCopies(device, bytes) {
  const target = device.allocate(bytes);
  const stream = device.createStream();
  const memory = slotMemory(bytes).subarray(0, bytes);
  const pageable = rate(bytes, () => device.copyFromHost(target, memory));
  const address = device.register(memory);
  const pinned = rate(
    bytes,
    () => device.copyToDevice(target, address, bytes, stream),
    () => device.synchronize(stream),
  );
  device.unregister(address);
  device.destroyStream(stream);
  device.free(target);
  return { pageable, pinned };
}

function rate(bytes, copy, wait = () => {}) {
  copy();
  wait();
  const rates = Array.from({ length: REPEATS }, () => {
    const start = performance.now();
    for (let round = 0; round < ROUNDS; round++) copy();
    wait();
    return (ROUNDS * bytes) / (performance.now() - start) / 1e6;
  });
  return rates.sort((a, b) => a - b)[REPEATS >> 1];
}
