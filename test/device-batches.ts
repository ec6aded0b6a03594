import { crc32 } from 'node:zlib';
import type { Device } from '@shardtool/cuda';
import {
  type DeviceArray,
  type DeviceBatch,
  type DeviceLoaderOptions,
  type LoaderOptions,
  openDataset,
} from '@shardtool/reader';
import { packedSmall } from './datasets.js';

/** 60 images in shards. */
export const shards = await packedSmall({ samples: 60, classes: 2 });
export const pixels = [{ name: 'resize', size: [24, 40] }] as const;
export const normalize = { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] } as const;
export const onHost = { batchSize: 7, workers: 1, fields: [], seed: 3, transform: pixels } satisfies LoaderOptions;
export const onDevice = { ...onHost, device: 'cuda:0' } satisfies DeviceLoaderOptions;

const VALUE_BYTES: Readonly<Record<DeviceArray['dtype'], number>> = {
  uint8: 1,
  float16: 2,
  bfloat16: 2,
  float32: 4,
  int32: 4,
};

/** The properties of a batch except its pixels, and the pixels as bytes. */
export interface Seen {
  readonly keys: readonly string[];
  readonly labels: readonly number[];
  readonly bytes: Uint8Array;
}

/** The bytes of an array on the device, as soon as its batch is ready. */
export async function download(
  device: Device,
  batch: DeviceBatch,
  array: DeviceArray = batch.images,
): Promise<Uint8Array> {
  await batch.ready.whenDone();
  const values = array.shape.reduce((product, length) => product * length, 1);
  return device.copyToHost(array.devicePointer, VALUE_BYTES[array.dtype] * values);
}

export async function seenOnDevice(device: Device, options: Partial<DeviceLoaderOptions> = {}): Promise<Seen[]> {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...onDevice, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) {
    seen.push({ keys: batch.keys, labels: [...batch.labels], bytes: await download(device, batch) });
  }
  return seen;
}

export async function seenOnHost(options: LoaderOptions = {}): Promise<Seen[]> {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...onHost, ...options });
  const seen: Seen[] = [];
  for await (const { keys, labels, images } of loader) {
    const bytes = new Uint8Array(images!.buffer, images!.byteOffset, images!.byteLength).slice();
    seen.push({ keys, labels: [...labels], bytes });
  }
  return seen;
}

/** A short form of batches that can be compared and printed. */
export const summed = (seen: readonly Seen[]) =>
  seen.map(({ keys, labels, bytes }) => ({ keys, labels, sum: crc32(bytes) }));

/** float32 rounded to bfloat16 by adding half of the dropped part. */
export function bfloat16(bytes: Uint8Array): Uint8Array {
  const words = new Uint32Array(bytes.slice().buffer);
  return new Uint8Array(Uint16Array.from(words, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16).buffer);
}

/**
 * The largest distance of two lists of floats, in units of the last place: the number of floats of the dtype from one to
 * the other.
 */
export function distance(dtype: 'float32' | 'float16' | 'bfloat16', a: Uint8Array, b: Uint8Array): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  const numbers = ({ buffer }: Uint8Array): Int32Array =>
    dtype === 'float32' ? new Int32Array(buffer) : Int32Array.from(new Int16Array(buffer));
  const lowest = dtype === 'float32' ? -0x8000_0000 : -0x8000;
  // Sign and magnitude, as integers in the order of the values.
  const ordered = (bits: number) => (bits < 0 ? lowest - bits : bits);
  const [left, right] = [numbers(a.slice()), numbers(b.slice())];
  return left.reduce((most, bits, i) => Math.max(most, Math.abs(ordered(bits) - ordered(right[i]!))), 0);
}
