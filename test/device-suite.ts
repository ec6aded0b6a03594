import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CudaError, Device } from '@shardtool/cuda';
import {
  type DeviceDtype,
  type DeviceObjects,
  type LoaderOptions,
  openDataset,
  openMixture,
  type TransformInput,
} from '@shardtool/reader';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { affine, BLOCK_THREADS, entryName, PARAMETER_OFFSETS, packParameters, ptxModule } from '#cuda/kernel';
import { annotatedTar } from './annotated-tar.js';
import { packedSmall } from './datasets.js';
import {
  bfloat16,
  distance,
  download,
  normalize,
  onDevice,
  onHost,
  pixels,
  seenOnDevice,
  seenOnHost,
  shards,
  summed,
} from './device-batches.js';
import { maskedTar } from './masked-tar.js';
import { raggedTar } from './ragged-tar.js';
import { TIMES } from './repetitions.js';

/** The device that the tests of {@link deviceSuite} use. */
export interface DeviceUnderTest {
  /** The largest allowed distance from the CPU's floats, in units of the last place. */
  readonly ulp: number;
  /** Device memory that the driver may allocate and free by itself. */
  readonly slackBytes: number;
}

const BATCHES = TIMES === 1 ? 3_000 : 10_000;
const SPIN = readFileSync('bench/gpu/spin.ptx', 'latin1');
const TRAP = readFileSync('test/fixtures/trap.ptx', 'latin1');

/** The tests for both the simulated driver and a GPU. */
export function deviceSuite({ ulp, slackBytes }: DeviceUnderTest): void {
  let device: Device;
  beforeEach(async () => {
    device = await Device.open(0);
  });
  // In a lost context nothing can be freed.
  afterEach(({ task }) => task.meta.isContextLost || device.close());

  test('bytes are read back unchanged from the device, for every way of copying', () => {
    const bytes = Uint8Array.from({ length: 100_003 }, (_, i) => Math.imul(i, 2_654_435_761) >>> 24);
    const stream = device.createStream();
    const target = device.allocate(bytes.length);
    const arrives = (): boolean => {
      device.synchronize(stream);
      const isSame = Buffer.compare(device.copyToHost(target, bytes.length), bytes) === 0;
      device.copyFromHost(target, new Uint8Array(bytes.length));
      return isSame;
    };
    device.copyFromHost(target, bytes);
    expect(arrives()).toBe(true);

    const pinned = device.allocatePinned(bytes.length);
    pinned.bytes.set(bytes);
    device.copyToDevice(target, pinned.address, bytes.length, stream);
    expect(arrives()).toBe(true);
    device.freePinned(pinned);

    // Like the batch slots: memory that WebAssembly and worker threads share.
    const memory = new Uint8Array(new WebAssembly.Memory({ initial: 2, maximum: 2, shared: true }).buffer);
    memory.set(bytes);
    const address = device.register(memory);
    device.copyToDevice(target, address, bytes.length, stream);
    expect(arrives()).toBe(true);
    device.unregister(address);
    device.free(target);
    device.destroyStream(stream);
  });

  test('uint8 batches equal those of the host, in both layouts', async () => {
    expect(summed(await seenOnDevice(device))).toEqual(summed(await seenOnHost()));
    const transform = [...pixels, { name: 'layout', layout: 'nchw' }] as const;
    expect(summed(await seenOnDevice(device, { transform }))).toEqual(summed(await seenOnHost({ transform })));
  });

  test.each(['nchw', 'nhwc'] as const)('floats in %s equal those of the CPU', async (layout) => {
    const asTransform = async (dtype: 'float32' | 'float16'): Promise<void> => {
      const half = dtype === 'float16' ? [{ name: 'toDtype', dtype } as const] : [];
      const transform: TransformInput = [...pixels, normalize, ...half, { name: 'layout', layout }];
      await alike(dtype, await seenOnDevice(device, { transform }), await seenOnHost({ transform }));
    };
    const alike = async (
      dtype: Exclude<DeviceDtype, 'uint8'>,
      got: Awaited<ReturnType<typeof seenOnDevice>>,
      expected: typeof got,
    ): Promise<void> => {
      expect(got.map(({ keys }) => keys)).toEqual(expected.map(({ keys }) => keys));
      const distances = got.map(({ bytes }, i) => distance(dtype, bytes, expected[i]!.bytes));
      expect(Math.max(...distances)).toBeLessThanOrEqual(ulp);
    };
    await asTransform('float32');
    await asTransform('float16');
    const { mean, std } = normalize;
    const named = await seenOnDevice(device, { device: { name: 'cuda:0', dtype: 'bfloat16', layout, mean, std } });
    const floats = await seenOnHost({ transform: [...pixels, normalize, { name: 'layout', layout }] });
    await alike(
      'bfloat16',
      named,
      floats.map((seen) => ({ ...seen, bytes: bfloat16(seen.bytes) })),
    );
  });

  test('masks keep their values, and extra images are converted like the images', async () => {
    await using dataset = await openDataset(maskedTar(10));
    const fields = { masks: ['seg.png', 'mask.npy'], extraImages: ['depth.npy'] };
    const transform = [{ name: 'randomResizedCrop', size: 24 }, { name: 'randomHorizontalFlip' }, normalize] as const;
    const options = { ...onHost, ...fields, batchSize: 4, transform };
    const expected = [];
    await using host = dataset.loader(options);
    for await (const { images, masks, extraImages } of host) {
      const arrays = [images, masks['seg.png'], masks['mask.npy'], extraImages['depth.npy']];
      expected.push(arrays.map((array) => new Uint8Array(array!.buffer, array!.byteOffset, array!.byteLength).slice()));
    }
    await using loader = dataset.loader({ ...options, device: 'cuda:0' });
    let at = 0;
    for await (const batch of loader) {
      const { images, masks, extraImages, size } = batch;
      expect([Object.keys(masks), Object.keys(extraImages)]).toEqual([fields.masks, fields.extraImages]);
      const [image, seg, mask, depth] = expected[at++]!;
      const [segArray, maskArray, depthArray] = [masks['seg.png']!, masks['mask.npy']!, extraImages['depth.npy']!];
      expect([segArray.dtype, segArray.shape]).toEqual(['uint8', [size, 24, 24]]);
      expect([depthArray.dtype, depthArray.shape]).toEqual(['float32', [size, 3, 24, 24]]);
      expect(Buffer.compare(await download(device, batch, segArray), seg!)).toBe(0);
      expect(Buffer.compare(await download(device, batch, maskArray), mask!)).toBe(0);
      expect(distance('float32', await download(device, batch, depthArray), depth!)).toBeLessThanOrEqual(ulp);
      expect(distance('float32', await download(device, batch, images), image!)).toBeLessThanOrEqual(ulp);
    }
    expect(at).toBe(expected.length);
  });

  test('annotations on the device equal those on the host, in batches with many objects and with none', async () => {
    await using dataset = await openDataset(annotatedTar(30));
    const options: LoaderOptions = {
      ...onHost,
      transform: [...pixels, { name: 'randomHorizontalFlip' }],
      annotations: {
        boxes: { field: 'json', path: 'objects.bbox' },
        labels: { field: 'json', path: 'objects.label' },
        keypoints: { field: 'json', path: 'objects.middle', count: 1 },
        polygons: { field: 'json', path: 'objects.segmentation' },
      },
    };
    // Fewer objects first, so that memory has to grow; every fifth image has none.
    const orders = [{ batchSize: 1, shuffle: false }, { batchSize: 30 }] as const;
    for (const order of orders) {
      const expected = [];
      await using host = dataset.loader({ ...options, ...order });
      for await (const { images, offsets, boxes, boxLabels, keypoints, polygons } of host) {
        const lists = { offsets, boxes, boxLabels, keypoints: keypoints!.values, points: polygons!.points };
        expected.push({ images: Buffer.from(images as Uint8Array), lists });
      }
      await using loader = dataset.loader({ ...options, ...order, device: 'cuda:0' });
      let at = 0;
      for await (const batch of loader) {
        const { objects, offsets, boxes } = batch;
        const { images, lists } = expected[at++]!;
        expect(Buffer.compare(await download(device, batch), images)).toBe(0);
        expect([offsets, boxes]).toEqual([lists.offsets, lists.boxes]);
        const count = offsets!.at(-1)!;
        expect(objects!.boxes!.shape).toEqual([count, 4]);
        expect(objects!.keypoints!.shape).toEqual([count, 1, 3]);
        expect(objects!.boxLabels).toMatchObject({ dtype: 'int32', shape: [count], strides: [1] });
        for (const [name, values] of Object.entries(lists) as [keyof DeviceObjects, Int32Array | Float32Array][]) {
          const bytes = values.length === 0 ? new Uint8Array(0) : await download(device, batch, objects![name]!);
          const given = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
          expect(Buffer.compare(bytes, given), name).toBe(0);
        }
      }
      expect(at).toBe(expected.length);
      expect(loader.report().device!.pinned).toBe('slots');
    }
    await using plain = dataset.loader({ ...onHost, device: 'cuda:0' });
    for await (const { objects } of plain) expect(objects).toBeNull();
  });

  test('samples with several images are on the device as on the host, with their offsets, also in batches without images', async () => {
    await using dataset = await openDataset(raggedTar(30));
    const options: LoaderOptions = { ...onHost, images: ['img.*'], transform: [...pixels, normalize], shuffle: false };
    let empty = 0;
    for (const batchSize of [1, 8]) {
      const expected = [];
      await using host = dataset.loader({ ...options, batchSize });
      for await (const { images, offsets } of host)
        expected.push({ offsets: [...offsets!], bytes: Buffer.from((images as Float32Array).slice().buffer) });
      await using loader = dataset.loader({ ...options, batchSize, device: 'cuda:0' });
      let at = 0;
      for await (const batch of loader) {
        const { offsets, bytes } = expected[at++]!;
        expect([[...batch.offsets!], batch.size]).toEqual([offsets, offsets.length - 1]);
        expect(batch.images.shape[0]).toBe(offsets.at(-1));
        const ends = await download(device, batch, batch.objects!.offsets);
        expect([...new Int32Array(Uint8Array.from(ends).buffer)]).toEqual(offsets);
        if (bytes.length === 0) empty++;
        else expect(distance('float32', await download(device, batch), bytes)).toBeLessThanOrEqual(ulp);
      }
      expect(at).toBe(expected.length);
    }
    expect(empty).toBeGreaterThan(0);
  });

  test('batches of several sizes equal those of the host, each with its crop, and a run resumes after any of them', async () => {
    const buckets = [
      [24, 12],
      [16, 16],
      [12, 24],
    ] as const;
    const options = { ...onHost, transform: [], applyExifOrientation: false, aspectBuckets: buckets };
    await using dataset = await openDataset(shards);
    const expected = [];
    await using host = dataset.loader(options);
    for await (const { images, shape, crop, keys } of host) {
      expected.push({ shape, crop, keys, bytes: Buffer.from(images as Uint8Array) });
    }
    const seen = [];
    await using loader = dataset.loader({ ...options, device: 'cuda:0' });
    for await (const batch of loader) {
      const { images, crop, keys, state } = batch;
      seen.push({ shape: images.shape, crop, keys, bytes: Buffer.from(await download(device, batch)), state });
    }
    expect(seen.map(({ state: _, ...batch }) => batch)).toEqual(expected);
    expect(new Set(seen.map(({ shape }) => shape.slice(1).join())).size).toBe(3);
    await using later = dataset.loader({ ...options, device: 'cuda:0', state: seen[3]!.state });
    const rest: (readonly string[])[] = [];
    for await (const { keys } of later) rest.push(keys);
    expect(rest).toEqual(expected.slice(4).map(({ keys }) => keys));
  });

  test('a mixture on the device states the dataset of each row', async () => {
    const other = await packedSmall({ samples: 20 }, { format: 'lmdb' });
    await using mixture = await openMixture([
      { dataset: shards, name: 'a', weight: 1 },
      { dataset: other, name: 'b', weight: 1 },
    ]);
    const expected = [];
    await using host = mixture.loader(onHost);
    for await (const { datasetIndex: source, keys } of host) expected.push({ source, keys });
    const seen = [];
    await using loader = mixture.loader(onDevice);
    for await (const { datasetIndex: source, keys } of loader) seen.push({ source, keys });
    expect(seen).toEqual(expected);
    expect(new Set(seen.flatMap(({ source }) => [...source!]))).toEqual(new Set([0, 1]));
  });

  test('a slow consumer on another stream gets each batch intact, because its memory is reused only afterwards', async () => {
    const transform = [...pixels, { name: 'layout', layout: 'nchw' }] as const;
    const expected = summed(await seenOnHost({ transform }));
    const stream = device.createStream();
    const [spin, convert] = [device.loadModule(SPIN), device.loadModule(ptxModule('uint8', 'nchw'))];
    const spinning = device.functionOf(spin, 'shardtool_spin');
    const converting = device.functionOf(convert, entryName('uint8', 'nchw')!);
    const results: { address: bigint; bytes: number }[] = [];
    {
      await using dataset = await openDataset(shards);
      await using loader = dataset.loader({ ...onDevice, device: { name: 'cuda:0', stream } });
      for await (const { devicePointer, size } of loader) {
        const bytes = size * 24 * 40 * 3;
        const result = { address: device.allocate(bytes), bytes };
        results.push(result);
        // 3 ms, after which it compares the batch.
        const wait = new DataView(new BigUint64Array([3_000_000n]).buffer);
        device.launch(spinning, { blocks: 1, threads: 1 }, wait, [0], stream);
        const work = { source: devicePointer, target: result.address, images: size, plane: 24 * 40 };
        const parameters = packParameters({ ...work, ...affine([0, 0, 0], [1, 1, 1]) });
        const grid = { blocks: Math.ceil((size * 24 * 40) / BLOCK_THREADS), threads: BLOCK_THREADS };
        device.launch(converting, grid, parameters, PARAMETER_OFFSETS, stream);
      }
    }
    device.synchronize(stream);
    const got = results.map(({ address, bytes }) => device.copyToHost(address, bytes));
    expect(summed(got.map((bytes, i) => ({ ...expected[i]!, bytes })))).toEqual(expected);
    for (const { address } of results) device.free(address);
    for (const module of [spin, convert]) device.unloadModule(module);
    device.destroyStream(stream);
  });

  test('a batch states its address, type, shape and strides', async () => {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, device: { name: 'cuda', dtype: 'float16', layout: 'nhwc' } });
    for await (const batch of loader) {
      const { devicePointer, dtype, shape, strides } = batch;
      expect({ devicePointer, dtype, shape, strides }).toEqual(batch.images);
      expect(devicePointer % 256n).toBe(0n);
      expect([dtype, shape, strides]).toEqual(['float16', [batch.size, 24, 40, 3], [2880, 120, 3, 1]]);
    }
    const { name, computeCapability } = device;
    expect(loader.report().device).toMatchObject({ name, computeCapability, pinned: 'slots' });
    // Three slots of float16, and the incoming bytes.
    expect(loader.report().device!.deviceBytes).toBe(3 * 7 * 2880 * 2 + 7 * 2880 + 3 * (256 - ((7 * 2880 * 2) % 256)));
  });

  test('a state belongs to the delivered batch, however many were prepared ahead, and resumes there', async () => {
    const whole = summed(await seenOnDevice(device));
    await using dataset = await openDataset(shards);
    const loader = dataset.loader(onDevice);
    for await (const batch of loader) {
      await batch.ready.whenDone();
      if (batch.index === 3) break;
    }
    expect(summed(await seenOnDevice(device, { state: loader.state() }))).toEqual(whole.slice(4));
  });

  test(`${BATCHES} batches need no more memory than the first ones, on the host and on the device`, async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({
      ...onHost,
      batchSize: 1,
      transform: [{ name: 'centerCrop', size: 8 }],
      device: { name: 'cuda', slots: 16 },
      prefetchBatches: 16,
      epochsPerLoop: Number.POSITIVE_INFINITY,
    });
    const taken = () => {
      collect();
      const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
      const { deviceBytes, pinnedBytes } = loader.report().device!;
      return { rss, heap: heapUsed + arrayBuffers, free: device.freeBytes, deviceBytes, pinnedBytes };
    };
    let batches = 0;
    const seen: ReturnType<typeof taken>[] = [];
    for await (const batch of loader) {
      batches++;
      if (batches % 1000 === 0) {
        await batch.ready.whenDone();
        seen.push(taken());
      }
      if (batches === BATCHES) break;
    }
    const { rss, heap, free, ...counted } = seen[0]!;
    const last = seen.at(-1)!;
    expect(last).toMatchObject(counted);
    expect(last.heap - heap).toBeLessThan(2 ** 20);
    expect(last.rss - rss).toBeLessThan(64 * 2 ** 20);
    expect(free - last.free).toBeLessThanOrEqual(slackBytes);
  });

  test('running out of memory is an error that says what to lower, and everything is released', async () => {
    const before = device.freeBytes;
    const taken = takeAll(device);
    await using dataset = await openDataset(shards);
    // 18 MB per slot.
    const transform = [{ name: 'resize', size: [160, 160] }, normalize] as const;
    const loader = dataset.loader({ ...onDevice, transform, batchSize: 60 });
    const rowsOf = async () => {
      let rows = 0;
      for await (const { size } of loader) rows += size;
      return rows;
    };
    const failure = rowsOf();
    await expect(failure).rejects.toBeInstanceOf(CudaError);
    await expect(failure).rejects.toMatchObject({
      call: 'cuMemAlloc_v2',
      result: 2,
      resultName: 'CUDA_ERROR_OUT_OF_MEMORY',
      message:
        'cuMemAlloc_v2 failed with CUDA_ERROR_OUT_OF_MEMORY (out of memory): choose a smaller batchSize, fewer device ' +
        'slots or a smaller dtype.',
    });
    for (const address of taken) device.free(address);
    expect(before - device.freeBytes).toBeLessThanOrEqual(slackBytes);
    // With free memory it works again.
    expect(await rowsOf()).toBe(60);
    await loader.close();
  });

  // This test must be last: after it nothing works on a GPU in this process.
  test('a lost context is thrown in the loop, with the name of the call that detected it', async ({ task }) => {
    task.meta.isContextLost = true;
    const trap = device.functionOf(device.loadModule(TRAP), 'shardtool_trap');
    const stream = device.createStream();
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...onDevice, epochsPerLoop: 50 });
    let batches = 0;
    const loop = (async () => {
      for await (const batch of loader) {
        batches++;
        await batch.ready.whenDone();
        if (batches === 12)
          device.launch(trap, { blocks: 1, threads: 1 }, new DataView(new ArrayBuffer(8)), [], stream);
      }
    })();
    await expect(loop).rejects.toThrow(/^cu\w+ failed with CUDA_ERROR_\w+ \([a-z ]+\)\.$/);
    expect(batches).toBeGreaterThanOrEqual(12);
  });
}

declare module 'vitest' {
  interface TaskMeta {
    isContextLost?: boolean;
  }
}

/** Allocates all memory of the device, down to pieces of one megabyte. */
function takeAll(device: Device): bigint[] {
  const taken: bigint[] = [];
  for (let bytes = 2 ** 30; bytes >= 2 ** 20; bytes /= 2) {
    try {
      for (;;) taken.push(device.allocate(bytes));
    } catch (error) {
      expect(error).toMatchObject({ result: 2 });
    }
  }
  return taken;
}
