import type { BatchObjects } from '../../annotations/record.js';
import type { Batch } from '../deliver/batch/batch.js';
import type { LoaderState } from '../loader-state.js';

/** bfloat16 is the upper half of a float32. */
export type DeviceDtype = 'uint8' | 'float32' | 'float16' | 'bfloat16';
export type DeviceLayout = 'nchw' | 'nhwc';

/** A CUstream: 0 is the default stream. */
export type StreamHandle = bigint | number;

/** Values in the memory of a GPU. */
export interface DeviceArray {
  /** Address of the first value (a CUdeviceptr). */
  readonly devicePointer: bigint;
  readonly dtype: DeviceDtype | 'int32';
  readonly shape: readonly number[];
  /** Distance between neighbours along each dimension, in values. */
  readonly strides: readonly number[];
}

/** An event of the copy stream: a batch has been copied and converted. */
export interface ReadyEvent {
  /** The CUevent. */
  readonly handle: bigint;
  /** Makes work that is later given to `stream` wait until the batch is ready. Returns immediately. */
  wait(stream: StreamHandle): void;
  /** True if it is ready. Throws CudaError if the copy or the kernel failed. */
  isDone(): boolean;
  /** Resolves when it is ready. */
  whenDone(): Promise<void>;
}

/** Annotations of the images as in {@link BatchObjects}, or with the option `images` only `offsets`. Null if neither was requested. */
export interface DeviceObjects {
  /** int32 [rows + 1]: row i has the objects, or with the option `images` the images, `offsets[i]` to `offsets[i + 1] - 1`. */
  readonly offsets: DeviceArray;
  /** float32 [n, 4]. */
  readonly boxes: DeviceArray | null;
  /** Class numbers, int32 [n]. */
  readonly boxLabels: DeviceArray | null;
  /** float32 [n, count, 3]. */
  readonly keypoints: DeviceArray | null;
  /** Corners of all polygons, float32 [p, 2]. The batch's `polygons` on the host assigns them to objects. */
  readonly points: DeviceArray | null;
}

type HostPart =
  | 'epoch'
  | 'index'
  | 'size'
  | 'labels'
  | 'crop'
  | 'mix'
  | 'valid'
  | 'indices'
  | 'datasetIndex'
  | 'keys'
  | 'fields'
  | keyof BatchObjects;

/**
 * A batch whose pixels are in the memory of a GPU, or being copied to it. That memory is reused when the next batch is
 * requested, or with `reuse: 'manual'` after {@link release}. Annotations are on the device (`objects`) and on the host
 * (`boxes` and so on). `devicePointer`, `dtype`, `shape` and `strides` are those of `images`.
 */
export interface DeviceBatch extends Pick<Batch, HostPart>, DeviceArray {
  /** [n, 3, height, width] or [n, height, width, 3]. With the option `images`, n is the number of all images. */
  readonly images: DeviceArray;
  /** Like `images`, by field name; the option `extraImages` names them. */
  readonly extraImages: Readonly<Record<string, DeviceArray>>;
  /** Values of masks by field name, uint8 [n, height, width]. */
  readonly masks: Readonly<Record<string, DeviceArray>>;
  /** The objects of the batch. Null without the options `annotations` and `images`. */
  readonly objects: DeviceObjects | null;
  /** The loader's own stream already waits for it. Any other stream must wait. */
  readonly ready: ReadyEvent;
  /** Position of the run after this batch, for the option `state`. */
  readonly state: LoaderState;
  /**
   * Allows the memory to be reused when `stream` (default: the loader's stream) has finished the work that was queued
   * on it before this call. Work that is queued later must not use the memory.
   */
  release(stream?: StreamHandle): void;
}

/** How batches are converted on their way to a device. */
export interface DevicePlan {
  readonly ordinal: number;
  readonly slots: number;
  readonly stream: StreamHandle;
  readonly dtype: DeviceDtype;
  readonly layout: DeviceLayout;
  /** (byte / 255 - mean) / std per channel. Ignored for uint8. */
  readonly normalization: { readonly mean: Channels; readonly std: Channels };
  readonly release: 'auto' | 'manual';
}

export type Channels = readonly [number, number, number];

/** Properties of a device and its memory. */
export interface DeviceReport {
  /** Name that the driver reports. */
  readonly name: string;
  /** `8.0`. */
  readonly computeCapability: string;
  /** Bytes of allocated device memory, and of page-locked host memory. */
  readonly deviceBytes: number;
  readonly pinnedBytes: number;
  /**
   * `slots`: the batch slots themselves are page-locked. `copy`: each batch is first copied into page-locked memory.
   * Null before the first batch.
   */
  readonly pinned: 'slots' | 'copy' | null;
  /** Why the batch slots could not be page-locked. */
  readonly pinnedBecause: string | null;
}

/** A source of uint8 batches for a device: a loader whose batches are released by hand. */
export interface HostBatches extends AsyncIterable<Batch> {
  /**
   * The memory that contains the batches, or null before it is allocated. It stays the same from the first batch to the
   * last.
   */
  readonly slotMemory: Uint8Array | null;
  /** State after the batch that was taken last. */
  state(): LoaderState;
}

/** One iteration over batches on their way to a device. */
export interface Uploads {
  /** The next batch; null after the last. */
  next(): Promise<DeviceBatch | null>;
  /** Ends the iteration. Pending and later requests for a batch reject with this error. */
  stop(reason: Error): void;
  /** Resolves when all work has ended. */
  end(): Promise<void>;
}

/** The interface that `@shardtool/cuda` implements for a plan. */
export interface DeviceStage {
  upload(batches: HostBatches): Uploads;
  report(): DeviceReport;
  /** Frees everything, after the work that was queued on streams before each batch was released. */
  close(): Promise<void>;
}
