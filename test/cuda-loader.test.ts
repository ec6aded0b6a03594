import { crc32 } from 'node:zlib';
import { CudaError, Device, NoCudaError } from '@shardtool/cuda';
import {
  type DeviceArray,
  type DeviceBatch,
  type DeviceLoaderOptions,
  type LoaderOptions,
  openDataset,
} from '@shardtool/reader';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packedSmall } from './datasets.js';
import { simulatedDriver } from './simulated-driver.js';

const shards = await packedSmall({ samples: 60, classes: 2 });
const pixels = [{ name: 'resize', size: [24, 40] }] as const;
const normalize = { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } as const;
const host = { batchSize: 7, workers: 1, fields: [], seed: 3 } satisfies LoaderOptions;
const onDevice = { ...host, transform: pixels, device: 'cuda:0' } satisfies DeviceLoaderOptions;

test('without a driver the loader says so in one sentence, and works again without the option', async () => {
  const before = process.env.SHARDTOOL_CUDA_DRIVER;
  process.env.SHARDTOOL_CUDA_DRIVER = '/nowhere/libcuda.so.1';
  await using dataset = await openDataset(shards);
  const error = await dataset
    .loader(onDevice)
    [Symbol.asyncIterator]()
    .next()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NoCudaError);
  expect((error as Error).message).toMatch(
    /^There is no CUDA driver here \(\/nowhere\/libcuda\.so\.1: .*\): install NVIDIA's driver, name its library in SHARDTOOL_CUDA_DRIVER, or leave out the option device\.$/,
  );
  if (before === undefined) delete process.env.SHARDTOOL_CUDA_DRIVER;
  else process.env.SHARDTOOL_CUDA_DRIVER = before;
  let rows = 0;
  for await (const batch of dataset.loader({ ...host, transform: pixels })) rows += batch.size;
  expect(rows).toBe(60);
});

test('options that no device can do are refused with the remedy', async () => {
  await using dataset = await openDataset(shards);
  const refused: [Partial<DeviceLoaderOptions>, RegExp][] = [
    [{ device: 'gpu' }, /option device\.name is not right: the name is "cuda" or "cuda:N"/],
    [{ device: { name: 'cuda', slots: 1 } }, /option device\.slots is not right/],
    [{ device: { name: 'cuda', std: [1, 0, 1] } }, /option device\.std\.?.* is not right/],
    [{ transform: 'raw' }, /leave out transform 'raw', or the option device/],
    [{ collate: 'list' }, /leave out collate 'list', or the option device/],
    [{ transform: [...pixels, normalize], device: { name: 'cuda', mean: [0, 0, 0] } }, /leave out one of them/],
    [{ transform: [...pixels, normalize, { name: 'randomErasing' }] }, /put it before normalize and toDtype/],
  ];
  for (const [options, reason] of refused) expect(() => dataset.loader({ ...onDevice, ...options })).toThrow(reason);
});

const driver = simulatedDriver();

describe.runIf(driver !== null)('with the simulated driver', () => {
  const simulation = driver!;
  beforeEach(() => simulation.reset());
  afterEach(() => expect(simulation.failure()).toBe(''));

  /** The bytes of an array on the device, when its batch is ready. */
  async function download(device: Device, batch: DeviceBatch, array: DeviceArray = batch.images): Promise<Uint8Array> {
    await batch.ready.whenDone();
    const bytes = { uint8: 1, float16: 2, bfloat16: 2, float32: 4 }[array.dtype];
    return device.copyToHost(array.devicePointer, bytes * array.shape.reduce((product, length) => product * length, 1));
  }

  interface Seen {
    readonly keys: readonly string[];
    readonly labels: readonly number[];
    readonly sum: number;
  }

  async function onTheDevice(options: Partial<DeviceLoaderOptions>): Promise<Seen[]> {
    const device = await Device.open(0);
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, ...options });
    const seen: Seen[] = [];
    for await (const batch of loader) {
      seen.push({ keys: batch.keys, labels: [...batch.labels], sum: crc32(await download(device, batch)) });
    }
    device.close();
    return seen;
  }

  async function onTheHost(options: LoaderOptions, of = (bytes: Uint8Array) => bytes): Promise<Seen[]> {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...host, transform: pixels, ...options });
    const seen: Seen[] = [];
    for await (const { keys, labels, images } of loader) {
      const bytes = new Uint8Array(images!.buffer, images!.byteOffset, images!.byteLength);
      seen.push({ keys, labels: [...labels], sum: crc32(of(bytes)) });
    }
    return seen;
  }

  /** float32 rounded to bfloat16 by adding half of what falls away. */
  function bfloat16(bytes: Uint8Array): Uint8Array {
    const words = new Uint32Array(bytes.slice().buffer);
    return new Uint8Array(Uint16Array.from(words, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16).buffer);
  }

  test('uint8 batches come as the host has them, in both layouts', async () => {
    expect(await onTheDevice({})).toEqual(await onTheHost({}));
    const nchw = [...pixels, { name: 'layout', layout: 'nchw' }] as const;
    expect(await onTheDevice({ transform: nchw })).toEqual(await onTheHost({ transform: nchw }));
  });

  test('what the transform says of values is done on the device, with the same result', async () => {
    const float32 = [...pixels, normalize];
    const float16 = [...float32, { name: 'toDtype', dtype: 'float16' } as const];
    expect(await onTheDevice({ transform: float32 })).toEqual(await onTheHost({ transform: float32 }));
    expect(await onTheDevice({ transform: float16 })).toEqual(await onTheHost({ transform: float16 }));
    const { mean, std } = normalize;
    const named = await onTheDevice({ device: { name: 'cuda:0', dtype: 'bfloat16', layout: 'nchw', mean, std } });
    expect(named).toEqual(await onTheHost({ transform: float32 }, bfloat16));
  });

  test('a batch says where it lies, and how', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, device: { name: 'cuda', dtype: 'float16', layout: 'nhwc' } });
    for await (const batch of loader) {
      const { devicePointer, dtype, shape, strides } = batch;
      expect({ devicePointer, dtype, shape, strides }).toEqual(batch.images);
      expect([dtype, shape, strides]).toEqual(['float16', [batch.size, 24, 40, 3], [2880, 120, 3, 1]]);
    }
    const { name, computeCapability, pinned, deviceBytes } = loader.report().device!;
    expect({ name, computeCapability, pinned }).toEqual({
      name: 'simulated device 0',
      computeCapability: '5.0',
      pinned: 'slots',
    });
    // Three slots of float16, and the bytes that arrive.
    expect(deviceBytes).toBe(3 * 7 * 2880 * 2 + 7 * 2880 + 3 * (256 - ((7 * 2880 * 2) % 256)));
  });

  test('the calls of a run come in the order that makes the next slot wait for the consumer', async () => {
    await using dataset = await openDataset(shards);
    {
      await using loader = dataset.loader({
        ...onDevice,
        epochSamples: 21,
        device: { name: 'cuda', slots: 2, dtype: 'float32', layout: 'nchw' },
      });
      simulation.calls();
      for await (const batch of loader) await batch.ready.whenDone();
    }
    const calls = simulation.calls();
    const of = (stream: number) =>
      calls.flatMap((call) => (call.includes(` stream ${stream}`) ? [call.replace(` stream ${stream}`, '')] : []));
    const copy = ['cuMemcpyHtoDAsync_v2', 'cuLaunchKernel'];
    // Of the first slot event 0 is `ready` and 1 is `consumed`; of the second 2 and 3.
    expect(of(1)).toEqual([
      ...copy,
      'cuEventRecord event 0',
      ...copy,
      'cuEventRecord event 2',
      'cuStreamWaitEvent event 1',
      ...copy,
      'cuEventRecord event 0',
    ]);
    expect(of(0)).toEqual(
      [0, 2, 0].flatMap((ready) => [`cuStreamWaitEvent event ${ready}`, `cuEventRecord event ${ready + 1}`]),
    );
    const others = (count: number, name: string) =>
      expect(calls.filter((call) => call === name).length, name).toBe(count);
    others(1, 'cuMemHostRegister_v2');
    others(1, 'cuMemHostUnregister');
    others(3, 'cuMemAlloc_v2');
    others(3, 'cuMemFree_v2');
    others(0, 'cuMemHostAlloc');
    expect(simulation.living()).toBe(0);
  });

  test('a consumer on a stream of its own waits for each batch, and slots wait for it', async () => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    const options = { name: 'cuda', dtype: 'float32', stream } as const;
    await using loader = dataset.loader({ ...onDevice, repeat: 20, device: options });
    let batches = 0;
    for await (const { devicePointer, size } of loader) {
      expect(simulation.use(devicePointer, size * 2880 * 4, stream, true)).toBe(0);
      batches++;
    }
    expect(batches).toBe(180);
  });

  test('with release by hand, another stream waits by the ready event and says when it is done', async () => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, release: 'manual', repeat: 5 });
    const held: DeviceBatch[] = [];
    for await (const batch of loader) {
      held.push(batch);
      batch.ready.wait(stream);
      expect(simulation.use(batch.devicePointer, batch.size * 2880, stream, false)).toBe(0);
      if (held.length === 2) held.shift()!.release(stream);
    }
    held[0]!.release(stream);
    held[0]!.release(stream);
  });

  test.each([
    ['does not wait', /^stream 1 reads device memory that stream 2 may still write$/],
    ['is not said to be done', /^stream 2 writes device memory that stream 1 may still read$/],
  ] as const)('the simulated driver sees a consumer that %s', async (fault, failure) => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    const loader = dataset.loader({ ...onDevice, repeat: 5 });
    const loop = (async () => {
      for await (const batch of loader) {
        if (fault === 'is not said to be done') batch.ready.wait(stream);
        if (simulation.use(batch.devicePointer, 7 * 2880, stream, false) !== 0) throw new Error(simulation.failure());
      }
    })();
    await expect(loop).rejects.toThrow();
    expect(simulation.failure()).toMatch(failure);
    await loader.close().catch(() => {});
    simulation.reset();
  });

  test('where the driver refuses the slots, each batch is copied once more, and report says why', async () => {
    const expected = await onTheHost({});
    simulation.fail('cuMemHostRegister_v2', 0, 801);
    const device = await Device.open(0);
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader(onDevice);
    const sums: number[] = [];
    for await (const batch of loader) sums.push(crc32(await download(device, batch)));
    expect(sums).toEqual(expected.map(({ sum }) => sum));
    expect(loader.report().device).toMatchObject({
      pinned: 'copy',
      pinnedBecause: 'cuMemHostRegister_v2 failed with error 801 (the driver has no text for it).',
    });
    expect(simulation.calls().filter((call) => call === 'cuMemHostAlloc')).toHaveLength(3);
  });

  test('out of memory is an error that says what to lower, and everything is given back', async () => {
    simulation.reset(10_000);
    await using dataset = await openDataset(shards);
    const error = await dataset
      .loader(onDevice)
      [Symbol.asyncIterator]()
      .next()
      .then(
        () => null,
        (reason: unknown) => reason,
      );
    expect(error).toBeInstanceOf(CudaError);
    expect(error).toMatchObject({ call: 'cuMemAlloc_v2', code: 2, codeName: 'CUDA_ERROR_OUT_OF_MEMORY' });
    expect((error as Error).message).toBe(
      'cuMemAlloc_v2 failed with CUDA_ERROR_OUT_OF_MEMORY (out of memory): choose a smaller batchSize, fewer device slots or ' +
        'a smaller dtype.',
    );
    expect(simulation.living()).toBe(0);
  });

  test('a lost context raises in the loop, with the name of the call that saw it', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, repeat: 50 });
    let batches = 0;
    const loop = (async () => {
      for await (const batch of loader) {
        batches++;
        await batch.ready.whenDone();
        if (batches === 12) simulation.fail('*', 5, 719);
      }
    })();
    await expect(loop).rejects.toThrow(/^cu\w+ failed with CUDA_ERROR_LAUNCH_FAILED \(unspecified launch failure\)\.$/);
    expect(batches).toBeGreaterThanOrEqual(12);
  });

  test('a state is that of the batch that was delivered, whatever was taken ahead, and goes on there', async () => {
    const whole = await onTheDevice({});
    const device = await Device.open(0);
    await using dataset = await openDataset(shards);
    const loader = dataset.loader(onDevice);
    for await (const batch of loader) {
      await batch.ready.whenDone();
      if (batch.index === 3) break;
    }
    const state = loader.state();
    await using rest = dataset.loader({ ...onDevice, state });
    const sums: number[] = [];
    for await (const batch of rest) sums.push(crc32(await download(device, batch)));
    expect(sums).toEqual(whole.slice(4).map(({ sum }) => sum));
  });

  test('a loop that ends early, or a loader that is closed within one, gives everything back and begins anew', async () => {
    await using dataset = await openDataset(shards);
    const loader = dataset.loader(onDevice);
    for await (const batch of loader) if (batch.index === 2) break;
    expect(simulation.living()).toBe(0);
    const loop = (async () => {
      for await (const batch of loader) if (batch.index === 2) await loader.close();
    })();
    await expect(loop).rejects.toThrow(/^The loader was closed while it was being iterated/);
    expect(simulation.living()).toBe(0);
    const epochs: number[] = [];
    for await (const { epoch } of loader) epochs.push(epoch);
    expect(epochs).toEqual(new Array(9).fill(2));
    await loader.close();
    expect(simulation.living()).toBe(0);
  });

  test('thousands of batches take the memory and the handles of the first ones', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, batchSize: 2, repeat: Number.POSITIVE_INFINITY });
    let batches = 0;
    let first: unknown;
    const taken = () => ({ living: simulation.living(), ...loader.report().device });
    for await (const batch of loader) {
      batches++;
      if (batches % 100 === 0) await batch.ready.whenDone();
      if (batches === 100) first = taken();
      if (batches === 3000) break;
      if (batches % 500 === 0) expect(taken()).toEqual(first);
    }
    expect(first).toMatchObject({ pinned: 'slots' });
  });
});
