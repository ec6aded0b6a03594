import { CudaError, Device, NoCudaError } from '@shardtool/cuda';
import { type DeviceBatch, type DeviceLoaderOptions, openDataset } from '@shardtool/reader';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  download,
  normalize,
  onDevice,
  onHost,
  pixels,
  type Seen,
  seenOnHost,
  shards,
  summed,
} from './device-batches.js';
import { deviceSuite } from './device-suite.js';
import { simulatedDriver } from './simulated-driver.js';

test.each([
  ['/nowhere/libcuda.so.1', '/nowhere/libcuda\\.so\\.1: '],
  ['libc.so.6', 'libc\\.so\\.6 is older than driver 450, or is not a CUDA driver: '],
])(
  'without a driver in %s the loader reports so in one sentence, and works again without the option',
  async (file, why) => {
    const before = process.env.SHARDTOOL_CUDA_DRIVER;
    process.env.SHARDTOOL_CUDA_DRIVER = file;
    await using dataset = await openDataset(shards);
    const error = await dataset
      .loader(onDevice)
      [Symbol.asyncIterator]()
      .next()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NoCudaError);
    const remedy =
      "install NVIDIA's driver, set SHARDTOOL_CUDA_DRIVER to the path of its library, or remove the option device\\.";
    expect((error as Error).message).toMatch(new RegExp(`^Found no CUDA driver \\(${why}.*\\): ${remedy}$`));
    if (before === undefined) delete process.env.SHARDTOOL_CUDA_DRIVER;
    else process.env.SHARDTOOL_CUDA_DRIVER = before;
    let rows = 0;
    for await (const batch of dataset.loader(onHost)) rows += batch.size;
    expect(rows).toBe(60);
  },
);

test('options that no device supports are rejected with a remedy', async () => {
  await using dataset = await openDataset(shards);
  const refused: [Partial<DeviceLoaderOptions>, RegExp][] = [
    [{ device: 'gpu' }, /option device\.name is invalid: it must be "cuda" or "cuda:N"/],
    [{ device: { name: 'cuda', slots: 1 } }, /option device\.slots is invalid/],
    [{ device: { name: 'cuda', std: [1, 0, 1] } }, /option device\.std\.?.* is invalid/],
    [{ transform: 'raw' }, /remove transform 'raw', or the option device/],
    [{ collate: 'list' }, /remove collate 'list', or the option device/],
    [{ channels: 1 }, /not 1 channels of uint8: remove device, or channels and pixelDtype/],
    [{ pixelDtype: 'uint16' }, /not 3 channels of uint16: remove device/],
    [{ transform: [...pixels, normalize], device: { name: 'cuda', mean: [0, 0, 0] } }, /remove one of them/],
    [{ transform: [...pixels, normalize, { name: 'randomErasing' }] }, /move it before normalize and toDtype/],
  ];
  for (const [options, reason] of refused) expect(() => dataset.loader({ ...onDevice, ...options })).toThrow(reason);
});

const driver = simulatedDriver();

describe.runIf(driver !== null)('with the simulated driver', () => {
  const simulation = driver!;
  beforeEach(() => simulation.reset());
  afterEach(() => expect(simulation.failure()).toBe(''));

  /** The error of the first batch. */
  async function failureOf(options: Partial<DeviceLoaderOptions> = {}): Promise<unknown> {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, ...options });
    try {
      for await (const _ of loader) break;
      return null;
    } catch (error) {
      return error;
    }
  }

  // This test must be first: later the driver is already loaded.
  test('a driver that finds no device reports so in one sentence, and can be tried again', async () => {
    simulation.fail('cuInit', 0, 100);
    const error = await failureOf();
    expect(error).toBeInstanceOf(NoCudaError);
    expect((error as Error).message).toBe(
      'The CUDA driver does not start (cuInit failed with CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)): ' +
        'run nvidia-smi to check it, or remove the option device.',
    );
    expect(await failureOf()).toBeNull();
  });

  test('the error for a missing device lists the existing ones', async () => {
    expect(await failureOf({ device: 'cuda:1' })).toMatchObject({
      message: 'There is no device cuda:1; this machine has only cuda:0.',
    });
    simulation.reset(undefined, 0);
    const error = await failureOf();
    expect(error).toBeInstanceOf(NoCudaError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^The CUDA driver found no device on this machine: remove/),
    });
  });

  describe('as on a GPU', () => {
    afterEach(({ task }) => task.meta.isContextLost || expect(simulation.living()).toBe(0));
    deviceSuite({ ulp: 0, slackBytes: 0 });
  });

  test('the calls of a run are ordered so that the next slot waits for the consumer', async () => {
    await using dataset = await openDataset(shards);
    {
      await using loader = dataset.loader({
        ...onDevice,
        samplesPerEpoch: 21,
        device: { name: 'cuda', slots: 2, dtype: 'float32', layout: 'nchw' },
      });
      simulation.calls();
      for await (const batch of loader) await batch.ready.whenDone();
    }
    const calls = simulation.calls();
    const of = (stream: number) =>
      calls.flatMap((call) => (call.includes(` stream ${stream}`) ? [call.replace(` stream ${stream}`, '')] : []));
    const copy = ['cuMemcpyHtoDAsync_v2', 'cuLaunchKernel'];
    // For the first slot event 0 is `ready` and 1 is `consumed`; for the second 2 and 3.
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
    // Pending work ends before the memory that it uses is freed, and the context is released last.
    const given = calls.indexOf('cuStreamSynchronize');
    const ofMemory = calls.filter((call, at) => at < given && /Unregister|Free|Destroy|Unload/.test(call));
    expect(ofMemory).toEqual([]);
    expect(calls.at(-1)).toBe('cuDevicePrimaryCtxRelease_v2');
    expect(simulation.living()).toBe(0);
  });

  test('a consumer on another stream waits for each batch, and slots wait for the consumer', async () => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    const options = { name: 'cuda', dtype: 'float32', stream } as const;
    await using loader = dataset.loader({ ...onDevice, epochsPerLoop: 20, device: options });
    let batches = 0;
    for await (const { devicePointer, size } of loader) {
      expect(simulation.use(devicePointer, size * 2880 * 4, stream, true)).toBe(0);
      batches++;
    }
    expect(batches).toBe(180);
  });

  test('with manual release, another stream waits for the ready event and signals when it is done', async () => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, reuse: 'manual', epochsPerLoop: 5 });
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
    ['does not signal that it is done', /^stream 2 writes device memory that stream 1 may still read$/],
  ] as const)('the simulated driver detects a consumer that %s', async (fault, failure) => {
    const device = await Device.open(0);
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    const loader = dataset.loader({ ...onDevice, epochsPerLoop: 5 });
    const loop = (async () => {
      for await (const batch of loader) {
        if (fault === 'does not signal that it is done') batch.ready.wait(stream);
        if (simulation.use(batch.devicePointer, 7 * 2880, stream, false) !== 0) throw new Error(simulation.failure());
      }
    })();
    await expect(loop).rejects.toThrow(new RegExp(failure.source.slice(1, -1)));
    expect(simulation.failure()).toMatch(failure);
    await loader.close().catch(() => {});
    simulation.reset();
  });

  test.each([
    ['that is not page-locked', /^memory that is not page-locked is copied asynchronously$/],
    ['that is released before it is copied', /^page-locked memory was given back before it was copied$/],
    ['that is changed before it is copied', /^host memory was changed before it was copied$/],
  ] as const)('the simulated driver detects host memory %s', async (fault, failure) => {
    const device = await Device.open(0);
    const stream = device.createStream();
    const target = device.allocate(4096);
    const memory = new Uint8Array(4096);
    const address = fault === 'that is not page-locked' ? device.address(memory) : device.register(memory);
    const work = () => {
      device.copyToDevice(target, address, 4096, stream);
      if (fault === 'that is released before it is copied') device.unregister(address);
      memory[4095] = 1;
      device.synchronize(stream);
    };
    expect(work).toThrow();
    expect(simulation.failure()).toMatch(failure);
    simulation.reset();
  });

  test('if the driver refuses the slots, each batch is copied once more, and report states why', async () => {
    const expected = summed(await seenOnHost());
    simulation.fail('cuMemHostRegister_v2', 0, 801);
    const device = await Device.open(0);
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader(onDevice);
    const seen: Seen[] = [];
    for await (const batch of loader) {
      seen.push({ keys: batch.keys, labels: [...batch.labels], bytes: await download(device, batch) });
    }
    expect(summed(seen)).toEqual(expected);
    expect(loader.report().device).toMatchObject({
      pinned: 'copy',
      pinnedBecause: 'cuMemHostRegister_v2 failed with error 801 (the driver has no text for it).',
    });
    expect(simulation.calls().filter((call) => call === 'cuMemHostAlloc')).toHaveLength(3);
  });

  test('the waits in a report are those of the device loop, and their causes add up to them', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader(onDevice);
    let samples = 0;
    for await (const batch of loader) samples += batch.size;
    const { epoch } = loader.report().wait;
    expect(epoch).toMatchObject({ epoch: 0, samples });
    expect(Object.values(epoch!.waitMsBy).reduce((a, b) => a + b, 0)).toBeCloseTo(epoch!.waitMs, 6);
    expect(loader.metrics()['shardtool/samples']).toBe(samples);
  });

  test.each([
    'cuDevicePrimaryCtxRetain',
    'cuStreamCreate',
    'cuEventCreate',
    'cuModuleLoadData',
    'cuMemAlloc_v2',
    'cuMemcpyHtoDAsync_v2',
    'cuLaunchKernel',
    'cuEventRecord',
    'cuStreamWaitEvent',
  ])('if %s fails, the loop raises an error with its name, and everything is released', async (call) => {
    simulation.fail(call, 0, 999);
    const error = await failureOf({ device: { name: 'cuda', dtype: 'float32' } });
    expect(error).toBeInstanceOf(CudaError);
    expect(error).toMatchObject({ call, resultName: 'CUDA_ERROR_UNKNOWN' });
    expect(simulation.living()).toBe(0);
  });

  test('if the driver refuses the slots and has no page-locked memory either, the loop reports so', async () => {
    simulation.fail('cuMemHostRegister_v2', 0, 801);
    simulation.fail('cuMemHostAlloc', 0, 2);
    expect(await failureOf()).toMatchObject({ call: 'cuMemHostAlloc', resultName: 'CUDA_ERROR_OUT_OF_MEMORY' });
    expect(simulation.living()).toBe(0);
  });

  test('a context that is lost between two batches raises an error, whichever call detects it', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, epochsPerLoop: 50 });
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

  test('a loop that ends early, or a loader that is closed during one, releases everything and can start again', async () => {
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
});
